package admin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"

	"tracegate/configs"
)

// The roles of admin keys: a viewer reads, an operator also acts.
const (
	roleViewer   = "viewer"
	roleOperator = "operator"
)

// guard lets callers in by their keys' digests. Without keys everybody is an
// operator who calls the listener by a name of its own: the check of the
// configuration warns where it is not on loopback.
type guard struct {
	keys map[[sha256.Size]byte]configs.AdminKey
	own  string // the host that the listener was configured with
}

func newGuard(keys []configs.AdminKey, listen string) guard {
	g := guard{keys: map[[sha256.Size]byte]configs.AdminKey{}, own: hostOf(listen)}
	for _, k := range keys {
		var d [sha256.Size]byte
		if n, err := hex.Decode(d[:], []byte(k.SHA256)); err != nil || n != len(d) {
			panic("BUG: an unchecked admin key reached the guard")
		}
		g.keys[d] = k
	}
	return g
}

// admit calls h for callers whose role is enough.
func (g guard) admit(role string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(g.keys) == 0 {
			if !g.calledByOwnName(r.Host) {
				refuse(w, http.StatusForbidden, "without admin.keys only requests to a loopback name or to the host of admin.listen are served, not to host="+strconv.Quote(r.Host))
				return
			}
			h(w, r)
			return
		}
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		has, known := g.keys[sha256.Sum256([]byte(key))]
		switch {
		case !known || !strings.EqualFold(scheme, "Bearer"):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "an admin key is needed: Authorization: Bearer KEY")
		case role == roleOperator && has.Role != roleOperator:
			refuse(w, http.StatusForbidden, "this needs a key of the role operator: the role of this key is "+has.Role)
		default:
			h(w, r.WithContext(context.WithValue(r.Context(), caller{}, has.Name)))
		}
	})
}

// caller is the key of a request's context under which the name of its admin key stands.
type caller struct{}

// callerOf is the name of the admin key that a request came with.
func callerOf(r *http.Request) string {
	if name, ok := r.Context().Value(caller{}).(string); ok {
		return name
	}
	return "anonymous"
}

// calledByOwnName says whether the host of a request is this listener's own. A
// page of another site can make an operator's browser ask us by the site's name,
// once that name leads here, and read the answers; it cannot choose an address
// of ours as its name. A listener on all addresses owns each of them.
func (g guard) calledByOwnName(host string) bool {
	host = hostOf(host)
	if strings.EqualFold(host, "localhost") || host != "" && strings.EqualFold(host, g.own) {
		return true
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	if ip.Unmap().IsLoopback() || g.own == "" {
		return true
	}
	own, err := netip.ParseAddr(g.own)
	return err == nil && (own.IsUnspecified() || own.Unmap() == ip.Unmap())
}

// hostOf is the host of host:port, or of a host alone; no brackets.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		return host
	}
	return strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
}
