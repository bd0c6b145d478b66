package fallback

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEdgesAreCountedAndSorted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var e Edges
		equal(t, "in JSON, none", inJSON(t, e.All()), "[]")
		e.Count("b", "a", Cut, true)
		e.Count("a", "c", Status5xx, true)
		e.Count("a", "c", Connect, false)
		e.Count("a", "b", Status5xx, true)
		time.Sleep(time.Second)
		e.Count("a", "c", Status5xx, false)
		e.Count("a", "c", Status5xx, false)
		equal(t, "edges", inJSON(t, e.All()), `[`+strings.Join([]string{
			`{"from":"a","to":"b","reason":"status_5xx","count":1,"last_time":"2000-01-01T00:00:00Z"}`,
			`{"from":"a","to":"c","reason":"connect","count":1,"last_time":"2000-01-01T00:00:00Z"}`,
			`{"from":"a","to":"c","reason":"status_5xx","count":3,"last_time":"2000-01-01T00:00:01Z"}`,
			`{"from":"b","to":"a","reason":"cut","count":1,"last_time":"2000-01-01T00:00:00Z"}`}, ",")+`]`)

		var rows []string
		e.Each(func(from, to string, reason Kind, answered bool, n int64) {
			e.Count("during", "Each", Cut, true) // no lock is held
			rows = append(rows, fmt.Sprint(from, to, " ", reason, " ", answered, " ", n))
		})
		equal(t, "by result", strings.Join(rows, ", "),
			"ab status_5xx true 1, ac connect false 1, ac status_5xx true 1, ac status_5xx false 2, ba cut true 1")
	})
}

func TestEdgesAreSharedExactly(t *testing.T) {
	var e Edges
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 1000 {
				e.Count("a", "b", Cut, i%2 == 0)
				e.All()
			}
		})
	}
	all.Wait()
	equal(t, "count", e.All()[0].Count, 8000)
}
