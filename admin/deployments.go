package admin

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"

	"tracegate/routing"
)

// steer handles POST /deployments/{name}/drain, enable and reset.
func (a *api) steer(action string, do func(*routing.Deployment)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		d := a.deployment(w, r, action)
		if d == nil {
			return
		}
		do(d)
		a.audited(r, "deployment "+action, d.Name(), "", "ok")
		reply(w, http.StatusOK, d.State())
	}
}

// deployment finds the one that the path names, or answers 404.
func (a *api) deployment(w http.ResponseWriter, r *http.Request, action string) *routing.Deployment {
	name := r.PathValue("name")
	d, ok := a.Table().Find(name)
	if !ok {
		why := "there is no deployment name=" + strconv.Quote(name)
		a.audited(r, "deployment "+action, name, "", why)
		refuse(w, http.StatusNotFound, why)
		return nil
	}
	return d
}

const (
	maxPatch  = 4 << 10
	maxWeight = 1_000_000
)

// patchDeployment changes its weight, until the process ends.
func (a *api) patchDeployment(w http.ResponseWriter, r *http.Request) {
	d := a.deployment(w, r, "weight")
	if d == nil {
		return
	}
	var patch struct {
		Weight *int `json:"weight"`
	}
	dec := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxPatch))
	dec.DisallowUnknownFields()
	err := dec.Decode(&patch)
	if err == nil && dec.More() {
		err = io.ErrUnexpectedEOF
	}
	switch {
	case err != nil:
		refuse(w, http.StatusBadRequest, `the body is not {"weight": n}: `+err.Error())
	case patch.Weight == nil:
		refuse(w, http.StatusBadRequest, "weight is missing, it is needed here")
	case *patch.Weight < 0 || *patch.Weight > maxWeight:
		refuse(w, http.StatusBadRequest, "weight="+strconv.Itoa(*patch.Weight)+" is out of range, allowed are 0 to "+strconv.Itoa(maxWeight))
	default:
		before := d.Weight()
		d.Live.SetWeight(patch.Weight)
		a.audited(r, "deployment weight", d.Name(), strconv.Itoa(before)+" to "+strconv.Itoa(*patch.Weight), "ok")
		reply(w, http.StatusOK, d.State())
	}
}
