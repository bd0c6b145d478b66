package fallback

import "bytes"

// The texts below are read because no status or code tells these cases apart.
// They are compared in lower case; one list per meaning, engines side by side.
var (
	contextLengthTexts = [][]byte{
		[]byte("context_length_exceeded"),     // OpenAI's code, resellers
		[]byte("maximum context length"),      // vLLM, OpenAI
		[]byte("prompt is too long"),          // Anthropic
		[]byte("longer than the model's con"), // SGLang
		[]byte("exceed_context_size"),         // llama.cpp's error type
		[]byte("exceeds the available context size"),
	}
	drainingTexts = [][]byte{
		[]byte("cannot schedule new futures after shutdown"), // vLLM after SIGTERM with --shutdown-timeout
	}
)

func saysContextLength(message []byte) bool { return containsAny(message, contextLengthTexts) }

func saysDraining(message []byte) bool { return containsAny(message, drainingTexts) }

func containsAny(message []byte, texts [][]byte) bool {
	if len(message) == 0 {
		return false
	}
	lower := bytes.ToLower(message)
	for _, t := range texts {
		if bytes.Contains(lower, t) {
			return true
		}
	}
	return false
}
