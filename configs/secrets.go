package configs

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net/url"
	"path/filepath"
	"strings"
)

const redacted = "[redacted]"

// Secret is a text that no formatting shows: not %v, %#v, JSON, YAML or slog.
type Secret string

// Reveal is the text itself. Its only place is where it goes out on the wire.
func (s Secret) Reveal() string { return string(s) }

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString keeps %#v from showing the text.
func (s Secret) GoString() string { return fmt.Sprintf("configs.Secret(%q)", s.String()) }

// MarshalText keeps encoders from showing the text.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON keeps JSON from showing the text.
func (s Secret) MarshalJSON() ([]byte, error) { return json.Marshal(s.String()) }

// MarshalYAML keeps YAML from showing the text.
func (s Secret) MarshalYAML() (any, error) { return s.String(), nil }

// LogValue keeps slog from showing the text.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// Format keeps every verb, %x and %q too, from showing the text.
func (s Secret) Format(f fmt.State, verb rune) { formatHidden(f, verb, s.String(), s.GoString()) }

// URL is an address that may carry a user and a password; formatting hides both.
type URL string

// Reveal is the whole text with the credential.
func (u URL) Reveal() string { return string(u) }

// parsed is the parsed address; nil when it is empty. After Load it always parses.
func (u URL) parsed() *url.URL {
	if u == "" {
		return nil
	}
	parsed, err := url.Parse(string(u))
	if err != nil {
		return nil
	}
	return parsed
}

func (u URL) String() string {
	if u == "" {
		return ""
	}
	parsed := u.parsed()
	if parsed == nil {
		return redacted
	}
	if parsed.User != nil {
		parsed.User = url.User(redacted)
		return strings.Replace(parsed.String(), url.User(redacted).String(), redacted, 1)
	}
	return string(u)
}

// GoString keeps %#v from showing the credential.
func (u URL) GoString() string { return fmt.Sprintf("configs.URL(%q)", u.String()) }

// MarshalText keeps encoders from showing the credential.
func (u URL) MarshalText() ([]byte, error) { return []byte(u.String()), nil }

// MarshalJSON keeps JSON from showing the credential.
func (u URL) MarshalJSON() ([]byte, error) { return json.Marshal(u.String()) }

// MarshalYAML keeps YAML from showing the credential.
func (u URL) MarshalYAML() (any, error) { return u.String(), nil }

// LogValue keeps slog from showing the credential.
func (u URL) LogValue() slog.Value { return slog.StringValue(u.String()) }

// Format keeps every verb from showing the credential.
func (u URL) Format(f fmt.State, verb rune) { formatHidden(f, verb, u.String(), u.GoString()) }

func formatHidden(f fmt.State, verb rune, plain, goString string) {
	switch {
	case verb == 'v' && f.Flag('#'):
		_, _ = f.Write([]byte(goString))
	case verb == 'q':
		fmt.Fprintf(f, "%q", plain)
	default:
		_, _ = f.Write([]byte(plain))
	}
}

// maxSecretFile bounds what ${file:} reads.
const maxSecretFile = 1 << 20

// expand replaces ${env:NAME} and ${file:/path}; $${ stands for a literal ${. What it
// puts in is not expanded again. dir is the base of relative file names.
func expand(text, dir string, env func(string) (string, bool)) (string, error) {
	var b strings.Builder
	for {
		i := strings.Index(text, "${")
		if i < 0 {
			b.WriteString(text)
			return b.String(), nil
		}
		if i > 0 && text[i-1] == '$' {
			b.WriteString(text[:i-1])
			b.WriteString("${")
			text = text[i+2:]
			continue
		}
		b.WriteString(text[:i])
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return "", fmt.Errorf("%q has no closing brace, allowed are ${env:NAME} and ${file:/path}; write $${ for a literal ${", clip(text[i:]))
		}
		value, err := lookUp(text[i+2:i+end], dir, env)
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		text = text[i+end+1:]
	}
}

func lookUp(reference, dir string, env func(string) (string, bool)) (string, error) {
	kind, name, _ := strings.Cut(reference, ":")
	switch {
	case kind == "env" && name != "":
		value, ok := env(name)
		if !ok {
			return "", fmt.Errorf("environment variable %s is not set", name)
		}
		return value, nil
	case kind == "file" && name != "":
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		data, err := readFile(name, maxSecretFile)
		if err != nil {
			return "", err
		}
		text := strings.TrimSuffix(string(data), "\n")
		return strings.TrimSuffix(text, "\r"), nil
	}
	return "", fmt.Errorf("unknown reference ${%s}, allowed are ${env:NAME} and ${file:/path}; write $${ for a literal ${", clip(reference))
}
