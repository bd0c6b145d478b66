package configs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is one thing that is wrong with the file, or worth a warning.
type Problem struct {
	// File is the file's name, or "--set path=value" for an override.
	File string
	// Line and Col count from 1; 0 where there is no position.
	Line, Col int
	// Path of the key, for example models[0].deployments[1].weight.
	Path string
	// Message says what is wrong and what is allowed.
	Message string
	// Warning: the file can be used all the same.
	Warning bool
}

// String is FILE:line:col: path: what is wrong, what is allowed.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Col)
	}
	b.WriteString(": ")
	if p.Path != "" && !p.fromSet() {
		b.WriteString(p.Path)
		b.WriteString(": ")
	}
	if p.Warning {
		b.WriteString("warning: ")
	}
	b.WriteString(p.Message)
	return b.String()
}

func (p Problem) fromSet() bool { return strings.HasPrefix(p.File, setPrefix) }

// hasErrors reports whether one of the problems is more than a warning.
func hasErrors(problems []Problem) bool {
	return slices.ContainsFunc(problems, func(p Problem) bool { return !p.Warning })
}

// sorted orders by position, overrides last, and drops what is said twice: an anchor
// that is used in several places has its problem once.
func sorted(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(
			compareBool(a.fromSet(), b.fromSet()),
			cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col),
			cmp.Compare(a.Message, b.Message), cmp.Compare(a.Path, b.Path),
		)
	})
	return slices.CompactFunc(problems, func(a, b Problem) bool {
		a.Path, b.Path = "", ""
		return a == b
	})
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// mark is where a value was written.
type mark struct {
	line, col int
	// set is the override that wrote it, "" for the file.
	set string
}

// problem is one about the value, at its place in the file or with the override that wrote it.
func (m mark) problem(file, path, message string) Problem {
	if m.set != "" {
		file = setFile(m.set)
	}
	return Problem{File: file, Line: m.line, Col: m.col, Path: path, Message: message}
}
