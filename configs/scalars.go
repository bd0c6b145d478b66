package configs

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxDuration bounds every duration, so that sums of some of them cannot overflow.
const maxDuration = 10 * 365 * 24 * time.Hour

// parseDuration reads a Go duration or a bare 0. Negative ones and those over
// maxDuration are errors; the error says what to write instead.
func parseDuration(text string) (time.Duration, error) {
	if text == "0" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil && isNumber(text):
		return 0, fmt.Errorf("%s is a number without a unit, write %ss", text, text)
	case err != nil && durationHint(text) != "":
		return 0, fmt.Errorf("%q is not a duration, write %s", clip(text), durationHint(text))
	case err != nil:
		return 0, fmt.Errorf("%q is not a duration, allowed are numbers with ns, us, ms, s, m or h such as 500ms, 5s or 1h30m", clip(text))
	case d < 0:
		return 0, fmt.Errorf("%s is negative, allowed are 0 and more", text)
	case d > maxDuration:
		return 0, fmt.Errorf("%s is too long, allowed is up to %s", text, formatDuration(maxDuration))
	}
	return d, nil
}

// durationHint repairs the usual slips: "5 sec", "3d", "10min".
func durationHint(text string) string {
	i := strings.IndexFunc(text, func(r rune) bool { return r < '0' || r > '9' })
	if i <= 0 || i > 9 {
		return ""
	}
	n, _ := strconv.ParseInt(text[:i], 10, 64)
	switch strings.ToLower(strings.TrimSpace(text[i:])) {
	case "s", "sec", "secs", "second", "seconds":
		return fmt.Sprintf("%ds", n)
	case "m", "min", "mins", "minute", "minutes":
		return fmt.Sprintf("%dm", n)
	case "h", "hr", "hrs", "hour", "hours":
		return fmt.Sprintf("%dh", n)
	case "ms", "msec", "millis", "milliseconds", "millisecond":
		return fmt.Sprintf("%dms", n)
	case "d", "day", "days":
		return fmt.Sprintf("%dh", n*24)
	case "w", "week", "weeks":
		return fmt.Sprintf("%dh", n*24*7)
	}
	return ""
}

func isNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && !strings.ContainsAny(text, "xXpPnN-+")
}

// formatDuration is the shortest text that parseDuration reads back.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0s"
	}
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"kB", 1e3}, {"B", 1},
}

// parseSize reads a number of bytes: 4096, 512KiB, 64MiB, 20GiB, 1GB.
func parseSize(text string) (int64, error) {
	digits, factor := text, int64(1)
	for _, unit := range sizeUnits {
		if rest, ok := strings.CutSuffix(text, unit.name); ok {
			digits, factor = strings.TrimRight(rest, " "), unit.bytes
			break
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	switch {
	case errors.Is(err, strconv.ErrRange), err == nil && n > math.MaxInt64/factor:
		return 0, fmt.Errorf("%s is too large for a size", clip(text))
	case err != nil:
		return 0, fmt.Errorf("%q is not a size, allowed are whole numbers with B, KB, MB, GB, TB, KiB, MiB, GiB or TiB such as 64MiB", clip(text))
	case n < 0:
		return 0, fmt.Errorf("%s is negative, allowed are 0 and more", text)
	}
	return n * factor, nil
}

// formatSize is the shortest exact text with a binary unit.
func formatSize(n int64) string {
	for _, unit := range sizeUnits[:4] {
		if n >= unit.bytes && n%unit.bytes == 0 {
			return strconv.FormatInt(n/unit.bytes, 10) + unit.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// clip shortens foreign text for a message.
func clip(text string) string {
	const limit = 60
	if len(text) <= limit {
		return text
	}
	cut := limit
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "…"
}
