package admin

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// AuditEntry is one action of an operator.
type AuditEntry struct {
	Time   time.Time `json:"time"`
	Who    string    `json:"who"`    // the name of the admin key; "anonymous" where none is needed
	From   string    `json:"from"`   // the address that it came from
	Action string    `json:"action"` // such as "deployment drain"
	Target string    `json:"target"`
	Detail string    `json:"detail,omitempty"`
	Result string    `json:"result"` // ok, or why not
}

// audit keeps the newest actions.
type audit struct {
	mu      sync.Mutex
	entries []AuditEntry // newest last, at most keptActions
}

const keptActions = 1000

func (l *audit) add(e AuditEntry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.entries) == keptActions {
		l.entries = slices.Delete(l.entries, 0, 1)
	}
	l.entries = append(l.entries, e)
}

// newest are the entries, newest first.
func (l *audit) newest() []AuditEntry {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := append([]AuditEntry{}, l.entries...)
	slices.Reverse(out)
	return out
}

// audited notes an action of the caller of r.
func (a *api) audited(r *http.Request, action, target, detail, result string) {
	a.log.add(AuditEntry{Time: time.Now().UTC(), Who: callerOf(r), From: r.RemoteAddr, Action: action, Target: target, Detail: detail, Result: result})
}

func (a *api) showAudit(w http.ResponseWriter, _ *http.Request) {
	reply(w, http.StatusOK, map[string][]AuditEntry{"entries": a.log.newest()})
}
