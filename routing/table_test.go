package routing

import (
	"strings"
	"testing"

	"tracegate/trace"
)

const twoModels = `
models:
  - name: b-model
    aliases: [z, a]
    deployments:
      - {name: b1, base_url: "http://127.0.0.1:1"}
      - {name: b2, base_url: "http://127.0.0.1:2"}
  - name: a-model
    deployments: [{name: a1, base_url: "http://127.0.0.1:3"}]
`

func TestModelsAreFoundByNameAndAlias(t *testing.T) {
	all := parse(t, nil, twoModels)
	for asked, want := range map[string]string{"b-model": "b-model", "z": "b-model", "a": "b-model", "a-model": "a-model"} {
		m, ok := all.Model(asked)
		if !ok {
			t.Errorf("%s is not found", asked)
			continue
		}
		equal(t, asked, m.Name(), want)
	}
	for _, unknown := range []string{"", "b1", "B-MODEL", "b-model "} {
		if m, ok := all.Model(unknown); ok || m != nil {
			t.Errorf("%q is found: %v", unknown, m)
		}
	}
}

func TestTheOrderIsTheFiles(t *testing.T) {
	all := parse(t, nil, twoModels)
	equal(t, "names, aliases sorted behind their model", strings.Join(all.Names(), " "), "b-model a z a-model")
	var models, deployments []string
	for _, m := range all.Models() {
		models = append(models, m.Name())
	}
	all.Deployments(func(d *Deployment) { deployments = append(deployments, d.Model+"/"+d.Name()) })
	equal(t, "models", strings.Join(models, " "), "b-model a-model")
	equal(t, "deployments", strings.Join(deployments, " "), "b-model/b1 b-model/b2 a-model/a1")
}

func TestLiveStateIsCarriedOverByName(t *testing.T) {
	before := parse(t, nil, twoModels)
	m, _ := before.Model("b-model")
	running := place(m.Deployments[0])
	ended := place(m.Deployments[1])
	end(&ended, trace.ResultFault, 0)
	m.Deployments[1].Live.Remember("cut", 0, "gone")

	after := parse(t, before, `
models:
  - name: renamed
    deployments:
      - {name: b2, base_url: "http://127.0.0.1:9", weight: 3}
      - {name: new, base_url: "http://127.0.0.1:2"}
      - {name: b1, base_url: "http://127.0.0.1:1"}
`)
	state := after.State()[0].Deployments
	equal(t, "b2's faults", state[0].Counts.Fault, 1)
	equal(t, "b2's last fault", state[0].LastFaults[0].Message, "gone")
	equal(t, "b2's weight is the new file's", state[0].Weight, 3)
	equal(t, "b2's model is the new file's", state[0].Model, "renamed")
	equal(t, "the new one has no past", state[1].Counts, Counts{})
	equal(t, "b1's request still runs", state[2].Inflight, 1)
	equal(t, "b1's age", state[2].Since.Equal(before.State()[0].Deployments[0].Since), true)

	end(&running, trace.ResultOK, 7) // begun under the old table
	equal(t, "after it ended, new table", after.State()[0].Deployments[2].Inflight, 0)
	equal(t, "after it ended, old table", before.State()[0].Deployments[0].Inflight, 0)
	equal(t, "counted", after.State()[0].Deployments[2].Counts.OK, 1)
	if m, ok := after.Model("b-model"); ok {
		t.Errorf("the old model is still there: %v", m)
	}
}
