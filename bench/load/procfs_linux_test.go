package load

import (
	"os"
	"testing"
	"time"
)

func TestProcess(t *testing.T) {
	before, err := CPUTime(os.Getpid())
	if err != nil || before <= 0 {
		t.Fatalf("CPU %v, %v", before, err)
	}
	// More than two ticks, because threads of other tests may end meanwhile.
	eventually(t, "this process uses 50 ms of CPU", func() bool {
		for end := Now() + int64(10*time.Millisecond); Now() < end; {
		}
		after, err := CPUTime(os.Getpid())
		return err == nil && after > before+50*time.Millisecond
	})
	if kb, err := RSS(os.Getpid()); err != nil || kb < 1000 {
		t.Errorf("RSS %d KB, %v", kb, err)
	}
	if cpu, err := MachineCPU(); err != nil || cpu <= 0 {
		t.Errorf("machine CPU %v, %v", cpu, err)
	}
	const noSuchPID = 1 << 30
	if _, err := CPUTime(noSuchPID); err == nil {
		t.Error("CPU of no process")
	}
	if _, err := RSS(noSuchPID); err == nil {
		t.Error("memory of no process")
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("7 (a) b (c) S 1 7 7 0 -1 4194304 90 0 0 0 150 25 0 0 20 0 5 0 100 1 1\n"))
	if err != nil || got != 1750*time.Millisecond {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseStat([]byte("7 (a) S 1")); err == nil {
		t.Error("a cut line was taken")
	}
}

func TestUsageOfARun(t *testing.T) {
	u := listenUpstream(t)
	r := mustRun(t, Plan{Addr: u.Addr(), Conns: 4, Whole: true, Window: 200 * time.Millisecond, Drain: time.Second, PID: os.Getpid()})
	if r.Usage == nil || r.Usage.CPU <= 0 || r.Usage.RSSKB == 0 || r.CPUPer(r.WindowCompleted) <= 0 || r.WindowSeconds != 0.2 {
		t.Errorf("%+v, usage %+v", r, r.Usage)
	}
}
