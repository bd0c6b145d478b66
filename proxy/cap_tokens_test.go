package proxy

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"tracegate/trace"
)

// tokenCaps are what may bound a generation, and which of the two decides.
var tokenCaps = []struct {
	name, model, tenant string
	limit               int64 // 0 = none
	setting             string
}{
	{"none", "", "", 0, ""},
	{"model", "    max_tokens: 100", "", 100, "models.public.max_tokens"},
	{"tenant", "", "    max_tokens: 100", 100, "tenants.team.max_tokens"},
	{"both, the model's lower", "    max_tokens: 100", "    max_tokens: 200", 100, "models.public.max_tokens"},
	{"both, the tenant's lower", "    max_tokens: 200", "    max_tokens: 100", 100, "tenants.team.max_tokens"},
	{"both alike", "    max_tokens: 100", "    max_tokens: 100", 100, "models.public.max_tokens"},
}

// TestGenerationIsCapped: what reaches the engine, and what the timeline says of it.
func TestGenerationIsCapped(t *testing.T) {
	for _, c := range tokenCaps {
		t.Run(c.name, func(t *testing.T) {
			s := quickly(setup{model: c.model, tenant: c.tenant})
			s.engine.KeepBodies, s.engine.DefaultTokens = true, 2
			r := newRig(t, s)
			for _, d := range dialects {
				for _, asked := range []int64{0, 99, 100, 101} {
					t.Run(fmt.Sprintf("%s/asked=%d", d.name, asked), func(t *testing.T) {
						want, note := asked, ""
						switch {
						case asked == 0 && c.limit == 0 && d.name == "messages":
							want, note = 8192, "none was sent: set to the default=8192"
						case asked == 0 && c.limit != 0:
							want, note = c.limit, fmt.Sprintf("none was sent: set to %s=%d", c.setting, c.limit)
						case c.limit != 0 && asked > c.limit:
							want, note = c.limit, fmt.Sprintf("what was asked for is over %s=%d", c.setting, c.limit)
						}
						r.isCapped(t, d, asked, want, note)
					})
				}
			}
		})
	}
}

// isCapped sends a request that asks for so many tokens, 0 = says nothing of them.
func (r *rig) isCapped(t *testing.T, d dialectCase, asked, want int64, note string) {
	t.Helper()
	field := "max_tokens"
	if d.name == "responses" {
		field = "max_output_tokens"
	}
	value := fmt.Sprintf(`"%s":%d,`, field, asked)
	if asked == 0 {
		value = ""
	}
	equal(t, "status", r.post(d.path, strings.Replace(d.body(false, "hello"), `"`+field+`":64,`, value, 1)).StatusCode, 200)
	rec := r.record()
	l, _ := r.engine.Request(rec.ID + "-a1")
	have, expected := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(l.Body, &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(d.body(false, "hello")), &expected); err != nil {
		t.Fatal(err)
	}
	delete(have, "request_id") // ours, where the body names it
	expected["model"] = "served"
	expected[field] = float64(want)
	if want == 0 {
		delete(expected, field)
	}
	equal(t, "request upstream", fmt.Sprint(have), fmt.Sprint(expected))
	notes := []trace.Note{}
	if note != "" {
		notes = append(notes, trace.Note{Setting: "max_tokens", Action: trace.NoteChanged, Reason: note})
	}
	equal(t, "notes", fmt.Sprint(rec.Notes), fmt.Sprint(notes))
}

// TestCountingTokensIsNotCapped: it generates nothing, and its answer says where the count comes from.
func TestCountingTokensIsNotCapped(t *testing.T) {
	r := newRig(t, setup{model: "    max_tokens: 100"})
	const body = `{"model":"public","messages":[{"role":"user","content":"hello"}]}`
	a := r.post("/v1/messages/count_tokens", body)
	equal(t, "status", a.StatusCode, 200)
	equal(t, "x-gateway-token-source", a.Header.Get("X-Gateway-Token-Source"), "upstream")
	contains(t, "body", string(a.body), `"input_tokens":`)
	rec := r.record()
	equal(t, "notes", len(rec.Notes), 0)
	equal(t, "dialect", rec.Dialect, "other")
	for _, d := range dialects {
		for _, stream := range []bool{true, false} {
			a := r.post(d.path, d.body(stream, "FAKE-TOKENS-2"))
			equal(t, "x-gateway-token-source of "+d.name, a.Header.Get("X-Gateway-Token-Source"), "")
			r.record()
		}
	}
}
