package fallback

import "testing"

// An upstream that refuses everything must not cost us memory for each refusal without words.
func TestClassifyWithoutAMessageDoesNotAllocate(t *testing.T) {
	failures := []Failure{{Kind: Cut}, {Status: 429, JSON: true}, {Status: 503}, {Status: 404}, {Status: 400}}
	equal(t, "allocations", testing.AllocsPerRun(1000, func() {
		for _, f := range failures {
			Classify(f)
		}
	}), 0)
}
