//go:build !race

package wire

// cutStep is the distance between the places where a recorded stream is cut.
const cutStep = 1
