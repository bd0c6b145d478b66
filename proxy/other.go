package proxy

import (
	"encoding/json"
	"time"

	"github.com/valyala/fasthttp"

	"tracegate/trace"
	"tracegate/wire"
)

// serveOther answers what is no request to a model: probes, the list of
// models, and paths that do not exist.
func (g *Gateway) serveOther(ctx *fasthttp.RequestCtx, e entry) {
	s, d := e.snap, e.door
	if e.fault != nil {
		g.turnAway(ctx, e)
		return
	}
	id := trace.NewID()
	setOwn(&ctx.Response.Header, id, 0)
	switch d.route.kind {
	case routeReady:
		if !g.Ready() {
			f := saturated("the gateway is shutting down")
			f.write(&ctx.Response, wire.Chat, id)
			return
		}
		ctx.Response.SetBodyString("ok\n")
	case routeModels:
		g.serveModels(ctx, s, d, id)
		return
	default:
		ctx.Response.SetBodyString("ok\n")
	}
	ctx.Response.Header.SetContentType("text/plain; charset=utf-8")
}

// openAIModel and anthropicModel are one entry of GET /v1/models in the two shapes.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

type anthropicModel struct {
	Type        string `json:"type"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at"`
}

// serveModels lists what the key may use, aliases too; the shape is told by
// the anthropic-version header, which only Anthropic's clients send.
func (g *Gateway) serveModels(ctx *fasthttp.RequestCtx, s *snapshot, d door, id string) {
	if ctx.IsHead() {
		return
	}
	anthropic := len(ctx.Request.Header.Peek("Anthropic-Version")) > 0
	dialect := wire.Chat
	if anthropic {
		dialect = wire.Messages
	}
	var names []string
	for _, name := range s.table.Names() {
		if m, _ := s.table.Model(name); d.key.Tenant.MayUse(m.Name()) {
			names = append(names, name)
		}
	}
	if len(d.modelID) == 0 {
		writeJSON(ctx, listOf(names, anthropic, g.started))
		return
	}
	for _, name := range names {
		if name == string(d.modelID) {
			writeJSON(ctx, modelOf(name, anthropic, g.started))
			return
		}
	}
	refusal(404, "model_not_found", "there is no model model="+quote(d.modelID)).write(&ctx.Response, dialect, id)
}

func listOf(names []string, anthropic bool, since time.Time) any {
	data := make([]any, 0, len(names))
	for _, name := range names {
		data = append(data, modelOf(name, anthropic, since))
	}
	if !anthropic {
		return map[string]any{"object": "list", "data": data}
	}
	page := map[string]any{"data": data, "has_more": false, "first_id": nil, "last_id": nil}
	if len(names) > 0 {
		page["first_id"], page["last_id"] = names[0], names[len(names)-1]
	}
	return page
}

func modelOf(name string, anthropic bool, since time.Time) any {
	if anthropic {
		return anthropicModel{Type: "model", ID: name, DisplayName: name, CreatedAt: since.UTC().Format(time.RFC3339)}
	}
	return openAIModel{ID: name, Object: "model", Created: since.Unix(), OwnedBy: "tracegate"}
}

func writeJSON(ctx *fasthttp.RequestCtx, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic("BUG: a list of models cannot be written: " + err.Error())
	}
	ctx.Response.Header.SetContentType("application/json")
	ctx.Response.SetBodyRaw(body)
}
