package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"tracegate/admin"
	"tracegate/configs"
	"tracegate/routing"
)

// runExplain says what would happen to a request, by a configuration alone:
// every deployment is taken for idle and well.
func runExplain(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("explain", "FILE", stdout, stderr)
	model := fs.String("model", "", "`NAME` of the model that is asked for")
	tenant := fs.String("tenant", "", "`NAME` of the tenant; without one every model may be used and there are no limits")
	dialect := fs.String("dialect", "", "`NAME` of the dialect: messages, chat, completions, responses, embeddings, other; without one any")
	tokens := fs.Int("prompt-tokens", 0, "length of the prompt in tokens, `N`")
	asJSON := fs.Bool("json", false, "print what GET /api/v1/route answers")
	files, err := fs.parse(args, 1)
	if err != nil {
		return err
	}
	if *model == "" {
		return fs.wrong("--model is missing")
	}
	if *tokens < 0 {
		return fs.wrong("--prompt-tokens is negative")
	}
	cfg, _, err := load(files[0], nil, stderr)
	if err != nil {
		return err
	}
	e, err := admin.Explain(cfg, routing.NewTable(cfg, nil), admin.Question{Model: *model, Tenant: *tenant, Dialect: *dialect, PromptTokens: *tokens})
	if err != nil {
		return err
	}
	if *asJSON {
		enc := json.NewEncoder(stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(e)
	}
	return printExplanation(stdout, cfg, &e)
}

func printExplanation(w io.Writer, cfg *configs.Config, e *admin.Explanation) error {
	var b strings.Builder
	fmt.Fprintf(&b, "model     %s\n", e.Model)
	if e.Chosen != nil {
		fmt.Fprintf(&b, "chosen    %s\n", *e.Chosen)
	} else {
		fmt.Fprintln(&b, "chosen    none")
	}
	for i, link := range e.Chain {
		fmt.Fprintf(&b, "%-9s %s (%s)\n", ordinal(i), link.Model, link.Strategy)
		for _, d := range link.Deployments {
			if d.Excluded != nil {
				fmt.Fprintf(&b, "            %s: excluded, %s\n", d.Deployment, *d.Excluded)
			} else {
				fmt.Fprintf(&b, "            %s: score %.4g\n", d.Deployment, *d.Score)
			}
		}
	}
	fmt.Fprintf(&b, "attempts  at most %d\n", cfg.Retry.MaxAttempts)
	fmt.Fprintf(&b, "limits    %s\n", limitsText(e.Limits))
	t := e.Timeouts
	fmt.Fprintf(&b, "timeouts  connect %d ms, first token %d ms, idle %d ms, total %d ms, write stall %d ms (0 = none)\n",
		t.Connect, t.FirstToken, t.Idle, t.Total, t.WriteStall)
	_, err := io.WriteString(w, b.String())
	return err
}

func ordinal(i int) string {
	if i == 0 {
		return "first"
	}
	return "then"
}

func limitsText(l admin.LimitsView) string {
	var parts []string
	add := func(name string, n *int64) {
		if n != nil {
			parts = append(parts, fmt.Sprintf("%s %d", name, *n))
		}
	}
	add("rpm", l.RPM)
	add("tpm", l.TPM)
	add("inflight", l.Inflight)
	add("max_tokens", l.MaxTokens)
	add("max_prompt_tokens", l.MaxPromptTokens)
	if l.Budget != nil {
		parts = append(parts, fmt.Sprintf("budget %g per %s", l.Budget.Amount, l.Budget.Per))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}
