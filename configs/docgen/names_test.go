package main

import "testing"

func TestGoNamesAreRefused(t *testing.T) {
	names := map[string]bool{"Load": true, "MaxAttempts": true, "Model": true, "Redis": true, "BaseURL": true, "DCGMUrl": true, "Backoff": true, "URL": true}
	for text, want := range map[string]string{
		"After Load all of them are effective.":         "Load",
		"MaxAttempts of one request.":                   "MaxAttempts",
		"The folded BaseURL.":                           "BaseURL",
		"DCGMUrl of a page.":                            "DCGMUrl",
		"A prompt estimated longer goes to Model.":      "Model",
		"Model that takes the long prompts.":            "",
		"The most. Backoff before the next.":            "",
		"With Redis, found from any replica.":           "",
		"The collector's base URL.":                     "",
		"Removes Claude Code's line; as max_time says.": "",
	} {
		if got := goName(text, names); got != want {
			t.Errorf("%q: found %q, want %q", text, got, want)
		}
	}
}

func TestSentencesBeginWithoutTheFieldsName(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"Idle", "Idle bounds the silence.", "Bounds the silence."},
		{"MaxBody", "MaxBody is the largest body.", "The largest body."},
		{"URL", "URL: redis://, rediss:// for TLS.", "redis://, rediss:// for TLS."},
		{"Amount", "Amount that may be spent.", "Amount that may be spent."},
	} {
		if got := sentence(c.text, c.name); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
