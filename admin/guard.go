package admin

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"tracegate/configs"
)

// The roles of admin keys: a viewer reads, an operator also acts.
const (
	roleViewer   = "viewer"
	roleOperator = "operator"
)

// guard lets callers in by their keys' digests. Without keys everybody is an
// operator: the check of the configuration warns where that is not on loopback.
type guard struct {
	roles map[[sha256.Size]byte]string
}

func newGuard(keys []configs.AdminKey) guard {
	g := guard{roles: map[[sha256.Size]byte]string{}}
	for _, k := range keys {
		var d [sha256.Size]byte
		if n, err := hex.Decode(d[:], []byte(k.SHA256)); err != nil || n != len(d) {
			panic("BUG: an unchecked admin key reached the guard")
		}
		g.roles[d] = k.Role
	}
	return g
}

// admit calls h for callers whose role is enough.
func (g guard) admit(role string, h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(g.roles) == 0 {
			h(w, r)
			return
		}
		scheme, key, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		has, known := g.roles[sha256.Sum256([]byte(key))]
		switch {
		case !known || !strings.EqualFold(scheme, "Bearer"):
			w.Header().Set("WWW-Authenticate", "Bearer")
			refuse(w, http.StatusUnauthorized, "an admin key is needed: Authorization: Bearer KEY")
		case role == roleOperator && has != roleOperator:
			refuse(w, http.StatusForbidden, "this key may read, not act: its role is "+has)
		default:
			h(w, r)
		}
	})
}
