package configs

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// suggestion is the text after an unknown key and, if the key looks like a slip, the
// key that was meant.
func suggestion(key string, known []string) (text, meant string) {
	allowed := "known here: " + strings.Join(known, ", ")
	if len(key) > 64 {
		return allowed, ""
	}
	folded := strings.ReplaceAll(strings.ToLower(key), "-", "_")
	best, distance := nearest(folded, known)
	if distance <= max(1, len(best)/3) {
		return fmt.Sprintf("did you mean %q? %s", best, allowed), best
	}
	if places := placesOf(folded); len(places) > 0 {
		return fmt.Sprintf("did you mean %s? %s", strings.Join(places, " or "), allowed), ""
	}
	return fmt.Sprintf("the nearest known key is %q; %s", best, allowed), ""
}

// nearest is the word of known with the least distance to text, the first of several.
func nearest(text string, known []string) (best string, distance int) {
	distance = math.MaxInt
	for _, word := range known {
		if d := editDistance(text, word); d < distance {
			best, distance = word, d
		}
	}
	return best, distance
}

// placesOf are the paths in the tree that end in this key: the two nearest to its root.
func placesOf(key string) []string {
	places := slices.Clone(keyPlaces()[key])
	slices.SortStableFunc(places, func(a, b string) int { return strings.Count(a, ".") - strings.Count(b, ".") })
	return places[:min(len(places), 2)]
}

var keyPlaces = sync.OnceValue(func() map[string][]string {
	places := map[string][]string{}
	for _, k := range Keys() {
		last := lastKey(k.Path)
		places[last] = append(places[last], k.Path)
	}
	return places
})

// editDistance counts insertions, deletions, replacements and swaps of neighbours.
func editDistance(a, b string) int {
	x, y := []rune(a), []rune(b)
	before, prev, row := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := 1; i <= len(x); i++ {
		row[0] = i
		for j := 1; j <= len(y); j++ {
			cost := 1
			if x[i-1] == y[j-1] {
				cost = 0
			}
			row[j] = min(prev[j]+1, row[j-1]+1, prev[j-1]+cost)
			if i > 1 && j > 1 && x[i-1] == y[j-2] && x[i-2] == y[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, prev, row = prev, row, before
	}
	return prev[len(y)]
}

// field is one key of a mapping: the struct field that holds it and its tags.
type field struct {
	key   string
	index []int
	tag   reflect.StructTag
	typ   reflect.Type
	// owner and name find the field's comment in the source.
	owner, name string
}

var fieldCache sync.Map // reflect.Type -> []field

// fieldsOf lists the keys of a struct in order, those of an embedded one in its place.
func fieldsOf(t reflect.Type) []field {
	if cached, ok := fieldCache.Load(t); ok {
		return cached.([]field)
	}
	var out []field
	for i := range t.NumField() {
		f := t.Field(i)
		key, option, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		switch {
		case option == "inline":
			for _, inner := range fieldsOf(f.Type) {
				inner.index = slices.Concat([]int{i}, inner.index)
				out = append(out, inner)
			}
		case f.IsExported() && key != "" && key != "-":
			out = append(out, field{key: key, index: []int{i}, tag: f.Tag, typ: f.Type, owner: t.Name(), name: f.Name})
		}
	}
	fieldCache.Store(t, out)
	return out
}
