package fakeengine

import "time"

// Flavor is the server that the engine plays.
type Flavor int

const (
	// VLLM writes the headers of a stream at once, then is silent through queue and prefill.
	VLLM Flavor = iota
	// SGLang writes the headers of a stream together with its first token.
	SGLang
)

// AbortMode is what happens to a request whose client has gone.
type AbortMode int

const (
	// AbortImmediate frees the request at the next step boundary, as vLLM does.
	AbortImmediate AbortMode = iota
	// AbortLate frees it AbortDelay later, as SGLang does.
	AbortLate
	// AbortNever generates to the end for nobody.
	AbortNever
)

// Names chooses the dialect of the metrics page.
type Names int

const (
	// MetricsNew are the names of a current vLLM.
	MetricsNew Names = iota
	// MetricsOld are the names before late 2025 (gpu_cache_usage_perc, time_per_output_token_seconds).
	MetricsOld
	// MetricsSGLang are SGLang's names.
	MetricsSGLang
)

// Options describe the engine. The zero value is a usable one: see the comments for the defaults.
type Options struct {
	Model    string   // served model name; "fake-model"
	Models   []string // further accepted names (adapters)
	AnyModel bool     // accept every model name
	Flavor   Flavor
	APIKey   string // "" = open; else Authorization: Bearer is checked on /v1 paths
	Version  string // answer of /version; "0.32.0"

	MaxNumSeqs         int           // sequences running at once; 64
	PrefillRate        float64       // uncached prompt tokens per second; 20,000
	WholePrefill       bool          // no chunked prefill: a prefill step decodes nobody
	ChunkTokens        int           // tokens of one step with chunked prefill; 2048
	StepBase           time.Duration // shortest time of a step; 15 ms
	StepPerSeq         time.Duration // added per decoding sequence; 50 us
	StepPerKiloContext time.Duration // added per 1,000 tokens of context of all decoding sequences; 5 us
	Jitter             float64       // each step is longer by a random share up to this; 0

	KVBlocks      int  // 4096
	BlockTokens   int  // 16
	NoPrefixCache bool // every prompt is computed in full
	MaxModelLen   int  // 32,768; never more than the KV cache holds

	KeepAlive  time.Duration // idle connections are closed after it; 5 s; negative: never
	Abort      AbortMode
	AbortDelay time.Duration // of AbortLate; 2 s

	MetricsNames    Names
	MaxQueuedReqs   int // waiting + running over it: 503; 0 = no limit
	MaxQueuedTokens int // prompt tokens in prefill over it: 503; 0 = no limit

	UsageDetails   bool   // prompt_tokens_details and cache fields (--enable-prompt-tokens-details)
	RequestMetrics bool   // metrics object in answers (--enable-per-request-metrics)
	ScaleOut       bool   // the abort endpoint exists (--enable-scale-out)
	EchoRequestID  bool   // X-Request-Id on answers (--enable-request-id-headers)
	ReasoningField string // "reasoning" (vLLM) or "reasoning_content" (SGLang's default)
	StreamInterval int    // tokens per event after the first; 1; the body's stream_interval wins
	MergeBehind    bool   // a reader that lags gets several tokens in one event, as vLLM does

	DefaultTokens int    // natural length of an answer, where max_tokens is not lower; 64
	Seed          uint64 // of texts, ids and jitter

	KeepTokenStamps bool // RequestLog.TokenStamps
	KeepBodies      bool // RequestLog.Body
	KeepLogs        int  // newest request logs kept; 20,000
}

func (o Options) withDefaults() Options {
	setString(&o.Model, "fake-model")
	setString(&o.Version, "0.32.0")
	setInt(&o.MaxNumSeqs, 64)
	if o.PrefillRate == 0 {
		o.PrefillRate = 20_000
	}
	setInt(&o.ChunkTokens, 2048)
	setDuration(&o.StepBase, 15*time.Millisecond)
	setDuration(&o.StepPerSeq, 50*time.Microsecond)
	setDuration(&o.StepPerKiloContext, 5*time.Microsecond)
	setInt(&o.KVBlocks, 4096)
	setInt(&o.BlockTokens, 16)
	setInt(&o.MaxModelLen, 32_768)
	o.MaxModelLen = min(o.MaxModelLen, o.KVBlocks*o.BlockTokens)
	setDuration(&o.KeepAlive, 5*time.Second)
	setDuration(&o.AbortDelay, 2*time.Second)
	if o.ReasoningField == "" {
		o.ReasoningField = "reasoning"
		if o.Flavor == SGLang {
			o.ReasoningField = "reasoning_content"
		}
	}
	setInt(&o.StreamInterval, 1)
	setInt(&o.DefaultTokens, 64)
	setInt(&o.KeepLogs, 20_000)
	return o
}

func setString(p *string, v string) {
	if *p == "" {
		*p = v
	}
}

func setInt(p *int, v int) {
	if *p == 0 {
		*p = v
	}
}

func setDuration(p *time.Duration, v time.Duration) {
	if *p == 0 {
		*p = v
	}
}
