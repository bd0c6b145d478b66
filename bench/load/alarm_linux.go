package load

import (
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// alarm lets one goroutine sleep until an exact moment and be woken before it. Go's own timers are rounded up to a millisecond when
// the process is idle, which would bunch the tokens of many streams together and hide what a wake-up costs a gateway.
type alarm struct{ r, w int }

func monotonic() int64 {
	var ts syscall.Timespec
	const clockMonotonic = 1
	if _, _, e := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&ts)), 0); e != 0 {
		panic("BUG: clock_gettime: " + e.Error())
	}
	return ts.Nano()
}

func newAlarm() (*alarm, error) {
	var fds [2]int
	if err := syscall.Pipe2(fds[:], syscall.O_NONBLOCK|syscall.O_CLOEXEC); err != nil {
		return nil, err
	}
	return &alarm{fds[0], fds[1]}, nil
}

// own binds the calling goroutine to a thread whose timers are not rounded. It stays bound until the goroutine ends.
func (a *alarm) own() {
	runtime.LockOSThread()
	const setTimerSlack = 29
	syscall.RawSyscall(syscall.SYS_PRCTL, setTimerSlack, 1, 0) // without it a wake-up is 50 µs later, which is all that is lost
}

// wait returns at until (Now's clock), or earlier after ring.
func (a *alarm) wait(until int64) {
	d := until - Now()
	if d <= 0 {
		return
	}
	ts := syscall.NsecToTimespec(min(d, int64(time.Hour)))
	const pollIn = 1
	p := struct {
		fd              int32
		events, revents int16
	}{fd: int32(a.r), events: pollIn}
	syscall.Syscall6(syscall.SYS_PPOLL, uintptr(unsafe.Pointer(&p)), 1, uintptr(unsafe.Pointer(&ts)), 0, 0, 0)
	if p.revents != 0 {
		var b [64]byte
		syscall.Read(a.r, b[:])
	}
}

// ring ends the present or the next wait. Any goroutine.
func (a *alarm) ring() { syscall.Write(a.w, []byte{1}) } // a full pipe rings too

func (a *alarm) close() {
	syscall.Close(a.r)
	syscall.Close(a.w)
}
