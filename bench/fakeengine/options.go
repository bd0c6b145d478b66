package fakeengine

import (
	"cmp"
	"time"
)

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
	// AbortLate frees it two seconds later, as SGLang does.
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
	Model    string // served model name; "fake-model"
	AnyModel bool   // accept every model name
	Flavor   Flavor
	APIKey   string // "" = open; else Authorization: Bearer is checked on /v1 paths

	MaxNumSeqs         int           // sequences running at once; 64
	PrefillRate        float64       // uncached prompt tokens per second; 20,000
	WholePrefill       bool          // no chunked prefill: a prefill step decodes nobody
	ChunkTokens        int           // tokens of one step with chunked prefill; 2048
	StepBase           time.Duration // shortest time of a step; 15 ms
	StepPerSeq         time.Duration // added per decoding sequence; 50 us
	StepPerKiloContext time.Duration // added per 1,000 tokens of context of all decoding sequences; 5 us

	SlowStart Slowness // after New and after a restart; none

	KVBlocks      int  // of 16 tokens each; 4096
	NoPrefixCache bool // every prompt is computed in full
	MaxModelLen   int  // 32,768; never more than the KV cache holds

	KeepAlive time.Duration // idle connections are closed after it; 5 s; negative: never
	Abort     AbortMode

	MetricsNames    Names
	MaxQueuedReqs   int // waiting + running over it: 503; 0 = no limit
	MaxQueuedTokens int // prompt tokens in prefill over it: 503; 0 = no limit

	UsageDetails   bool // prompt_tokens_details and cache fields (--enable-prompt-tokens-details)
	RequestMetrics bool // metrics object in answers (--enable-per-request-metrics)
	ScaleOut       bool // the abort endpoint exists (--enable-scale-out)
	EchoRequestID  bool // X-Request-Id on answers (--enable-request-id-headers)

	DefaultTokens int    // natural length of an answer, where max_tokens is not lower; 64
	Seed          uint64 // of texts and ids

	KeepTokenStamps bool // RequestLog.TokenStamps
	KeepBodies      bool // RequestLog.Body
}

const (
	version     = "0.32.0" // answer of /version
	blockTokens = 16       // of a KV block
	abortDelay  = 2 * time.Second
)

func (o Options) withDefaults() Options {
	o.Model = cmp.Or(o.Model, "fake-model")
	o.MaxNumSeqs = cmp.Or(o.MaxNumSeqs, 64)
	o.PrefillRate = cmp.Or(o.PrefillRate, 20_000)
	o.ChunkTokens = cmp.Or(o.ChunkTokens, 2048)
	o.StepBase = cmp.Or(o.StepBase, 15*time.Millisecond)
	o.StepPerSeq = cmp.Or(o.StepPerSeq, 50*time.Microsecond)
	o.StepPerKiloContext = cmp.Or(o.StepPerKiloContext, 5*time.Microsecond)
	o.KVBlocks = cmp.Or(o.KVBlocks, 4096)
	o.MaxModelLen = min(cmp.Or(o.MaxModelLen, 32_768), o.kvTokens())
	o.KeepAlive = cmp.Or(o.KeepAlive, 5*time.Second)
	o.DefaultTokens = cmp.Or(o.DefaultTokens, 64)
	return o
}

// kvTokens is what the KV cache holds.
func (o Options) kvTokens() int { return o.KVBlocks * blockTokens }
