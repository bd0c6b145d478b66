package fakeengine

// control serves /_fake/: what a person or a script outside the process does to the engine.
func (x *exchange) control() {
	x.json(404, []byte(`{"detail":"Not Found"}`))
}
