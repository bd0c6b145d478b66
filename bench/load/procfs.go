package load

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of the times in /proc/PID/stat: USER_HZ is 100 on every architecture that Go runs on under Linux.
const tick = 10 * time.Millisecond

// CPUTime is the CPU that a process has used. The scheduler's count is read besides the ticks, because a tick is a hundred requests
// long; it lacks the threads that have ended, which the ticks have. So the greater of the two is right to within two ticks, and
// exact for a process whose threads stay.
func CPUTime(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("cannot read CPU of pid=%d: %w", pid, err)
	}
	ticks, err := parseStat(b)
	return max(ticks, scheduled(pid)), err
}

// scheduled adds up the threads that a process has now; 0 where the kernel does not tell.
func scheduled(pid int) (sum time.Duration) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			continue // the thread has just ended
		}
		field, _, _ := strings.Cut(string(b), " ")
		if ns, err := strconv.ParseInt(field, 10, 64); err == nil {
			sum += time.Duration(ns)
		}
	}
	return sum
}

// parseStat adds user and system time. The command in parentheses may hold anything, so the fields are counted from its end.
func parseStat(b []byte) (time.Duration, error) {
	f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:])
	if len(f) < 13 {
		return 0, fmt.Errorf("cannot parse stat %.80q: too few fields", b)
	}
	user, err1 := strconv.ParseInt(string(f[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(f[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0, fmt.Errorf("cannot parse stat %.80q: times are no numbers", b)
	}
	return time.Duration(user+system) * tick, nil
}

// RSS is the resident memory of a process in KB.
func RSS(pid int) (int64, error) {
	for _, f := range []struct{ name, key string }{{"smaps_rollup", "Rss:"}, {"status", "VmRSS:"}} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, f.name))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			if rest, ok := strings.CutPrefix(line, f.key); ok {
				return strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			}
		}
	}
	return 0, fmt.Errorf("cannot read memory of pid=%d: neither smaps_rollup nor status tells", pid)
}

// MachineCPU is the CPU time that all programs of the machine have used.
func MachineCPU() (time.Duration, error) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, fmt.Errorf("cannot read CPU of the machine: %w", err)
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	f := bytes.Fields(line)
	var sum time.Duration
	for _, i := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		if i >= len(f) {
			break
		}
		n, err := strconv.ParseInt(string(f[i]), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("cannot parse /proc/stat %.80q: %w", line, err)
		}
		sum += time.Duration(n) * tick
	}
	return sum, nil
}
