//go:build race

package wire

// cutStep is the distance between the places where a recorded stream is cut; the race detector is slow.
const cutStep = 13
