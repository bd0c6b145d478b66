package configs

import (
	"fmt"
	"net"
	"path/filepath"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var (
	namePattern   = regexp.MustCompile(`^[A-Za-z0-9._:/-]{1,128}$`)
	digestPattern = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// emptyDigest is the digest of an empty key: the usual result of a slip in a shell.
const emptyDigest = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// check does what the check tag of a key asks for. File names become relative to the
// configuration file, unless an override wrote them.
func (d *decoder) check(v reflect.Value, path string, f field) error {
	if v.Type() == secretType {
		return checkSecret(v.String())
	}
	switch f.tag.Get("check") {
	case "name":
		return checkName(v.String())
	case "digest":
		return checkDigest(v.String())
	case "address":
		return checkAddress(v.String())
	case "file", "dir":
		name := v.String()
		if name != "" && !filepath.IsAbs(name) && d.written[path].set == "" {
			v.SetString(filepath.Join(d.dir, name))
		}
	}
	return nil
}

// checkSecret: a credential travels in a header or a signature, where a line break
// would end it.
func checkSecret(text string) error {
	if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return fmt.Errorf("the secret holds a line break or another control character, allowed is one line of text")
	}
	if text != strings.TrimSpace(text) {
		return fmt.Errorf("the secret begins or ends with a space, allowed is text without")
	}
	return nil
}

func checkName(name string) error {
	switch {
	case namePattern.MatchString(name):
		return nil
	case name == "":
		return fmt.Errorf("the name is empty, allowed are 1 to 128 of A-Z a-z 0-9 . _ : / -")
	}
	return fmt.Errorf("%q is not a name, allowed are 1 to 128 of A-Z a-z 0-9 . _ : / -", clip(name))
}

func checkDigest(text string) error {
	switch {
	case text == emptyDigest:
		return fmt.Errorf("this is the digest of an empty key, allowed is that of the whole key text")
	case digestPattern.MatchString(text):
		return nil
	case digestPattern.MatchString(strings.ToLower(text)):
		return fmt.Errorf("the digest has upper-case digits, write it in lower case")
	case strings.HasPrefix(text, "sk-"):
		return fmt.Errorf("this looks like a key, allowed is its SHA-256 digest: 64 lower-case hex digits")
	}
	return fmt.Errorf("%q is not a SHA-256 digest, allowed are 64 lower-case hex digits", clip(text))
}

func checkAddress(text string) error {
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return fmt.Errorf("%q is not an address, allowed is host:port such as 127.0.0.1:4000 or :4000", clip(text))
	}
	if _, err := strconv.ParseUint(port, 10, 16); err != nil {
		return fmt.Errorf("%q is not a port, allowed are 0 to 65535", clip(port))
	}
	if strings.ContainsAny(host, " /@?#") {
		return fmt.Errorf("%q is not a host, allowed is a name or an IP address", clip(host))
	}
	return nil
}

// isLoopback reports whether an address is reachable from this machine alone.
func isLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// inRange applies the tags min, max, above and below. Without them no number is negative.
func inRange(v reflect.Value, text string, f field) error {
	if v.Type() == timeType || !isNumeric(v) {
		return nil
	}
	var x float64
	if v.CanInt() {
		x = float64(v.Int())
	} else {
		x = v.Float()
	}
	low, high := f.tag.Get("min"), f.tag.Get("max")
	above, below := f.tag.Get("above"), f.tag.Get("below")
	if low == "any" || (low == "" || x >= limit(low)) && (low != "" || x >= 0) &&
		(high == "" || x <= limit(high)) && (above == "" || x > limit(above)) && (below == "" || x < limit(below)) {
		return nil
	}
	return fmt.Errorf("%s is out of range, allowed is %s", clip(text), rangeText(f))
}

func limit(tag string) float64 {
	x, err := strconv.ParseFloat(tag, 64)
	if err != nil {
		panic("BUG: bad limit in a tag: " + tag)
	}
	return x
}

// rangeText says the allowed range in words.
func rangeText(f field) string {
	low, high := f.tag.Get("min"), f.tag.Get("max")
	above, below := f.tag.Get("above"), f.tag.Get("below")
	unit := ""
	if f.tag.Get("unit") == "size" {
		unit = " bytes"
	}
	switch {
	case above != "" && below != "":
		return "more than " + above + " and less than " + below
	case above != "" && high != "":
		return "more than " + above + " up to " + high
	case above != "":
		return "more than " + above
	case low != "" && high != "":
		return low + " to " + high
	case f.tag.Get("optional") != "":
		return "1 and more; leave the key out for no limit"
	case low != "":
		return low + unit + " and more"
	case high != "":
		return "0 to " + high
	}
	return "0 and more"
}

// wanted says what a key takes.
func wanted(f field, v reflect.Value) string {
	if enum := f.tag.Get("enum"); enum != "" {
		return "one of " + strings.ReplaceAll(enum, "|", ", ")
	}
	switch {
	case v.Type() == durationType:
		return "a duration such as 500ms, 5s or 10m"
	case v.Type() == timeType:
		return "a time in RFC 3339 such as 2027-01-01T00:00:00Z"
	case f.tag.Get("unit") == "size":
		return "a size such as 64MiB"
	case v.Kind() == reflect.Bool:
		return "true or false"
	case v.Kind() == reflect.Float64:
		return "a number"
	case v.CanInt():
		return "a whole number"
	}
	return "text"
}

// expired reports whether a key's time has passed.
func expired(k Key, now time.Time) bool { return !k.Expires.IsZero() && !now.Before(k.Expires) }
