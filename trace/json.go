package trace

import (
	"encoding/json"
	"errors"
	"time"
)

// document is the JSON of a record as UnmarshalJSON reads it. The names are public and stay; AppendJSON writes the same.
type document struct {
	ID          string   `json:"id"`
	ClientID    word     `json:"client_request_id"`
	UpstreamIDs []string `json:"upstream_request_ids"`

	Tenant          word   `json:"tenant"`
	KeyID           word   `json:"key_id"`
	Model           word   `json:"model"`
	AskedModel      word   `json:"asked_model"`
	Dialect         string `json:"dialect"`
	UpstreamDialect word   `json:"upstream_dialect"`
	Stream          bool   `json:"stream"`

	Client clientDoc `json:"client"`
	Tags   []string  `json:"tags"`

	Outcome word      `json:"outcome"`
	Phase   Phase     `json:"phase"`
	Side    word      `json:"side"`
	Error   *errorDoc `json:"error"`
	Limit   word      `json:"limit"`
	Status  *int      `json:"status"`

	Open       instant `json:"open_time"`
	Enqueue    instant `json:"enqueue_time"`
	Admit      instant `json:"admit_time"`
	Pick       instant `json:"pick_time"`
	Dispatch   instant `json:"dispatch_time"`
	Headers    instant `json:"headers_time"`
	FirstByte  instant `json:"first_byte_time"`
	Commit     instant `json:"commit_time"`
	FirstToken instant `json:"first_token_time"`
	LastToken  instant `json:"last_token_time"`
	Finish     instant `json:"finish_time"`
	Snapshot   instant `json:"snapshot_time"`

	TTFT     millis `json:"ttft_ms"`
	Duration millis `json:"duration_ms"`
	Queue    millis `json:"queue_ms"`
	TPOT     millis `json:"tpot_ms"`
	TBT      tbtDoc `json:"tbt"`

	Tokens       tokensDoc `json:"tokens"`
	Cost         *float64  `json:"cost"`
	FinishReason word      `json:"finish_reason"`

	Attempts []attemptDoc `json:"attempts"`
	Limiter  limiterDoc   `json:"limiter"`
	Notes    []noteDoc    `json:"notes"`
	Route    routeDoc     `json:"route"`
	Engine   engineDoc    `json:"engine"`
	Gaps     []Gap        `json:"gaps"`

	WriteStall millis   `json:"write_stall_ms"`
	PickWork   millis   `json:"pick_work_ms"`
	RelayWork  millis   `json:"relay_work_ms"`
	Findings   []string `json:"findings"`
}

type clientDoc struct {
	Agent      word  `json:"agent"`
	Session    word  `json:"session"`
	RetryCount count `json:"retry_count"`
}

type errorDoc struct {
	Kind    string `json:"kind"`
	Message string `json:"message"`
}

type tbtDoc struct {
	Count  int64  `json:"count"`
	P50    millis `json:"p50_ms"`
	P90    millis `json:"p90_ms"`
	P99    millis `json:"p99_ms"`
	Max    millis `json:"max_ms"`
	Stalls int64  `json:"stalls"`
}

type tokensDoc struct {
	Input      count `json:"input"`
	Output     count `json:"output"`
	CacheRead  count `json:"cache_read"`
	CacheWrite count `json:"cache_write"`
	Reasoning  count `json:"reasoning"`
	Source     word  `json:"source"`
}

type attemptDoc struct {
	N           int     `json:"n"`
	Deployment  string  `json:"deployment"`
	Model       word    `json:"model"`
	Start       instant `json:"start"`
	Connect     millis  `json:"connect_ms"`
	Sent        millis  `json:"sent_ms"`
	Headers     millis  `json:"headers_ms"`
	FirstByte   millis  `json:"first_byte_ms"`
	FirstToken  millis  `json:"first_token_ms"`
	End         instant `json:"end"`
	Outcome     word    `json:"outcome"`
	Fault       word    `json:"fault"`
	Status      *int    `json:"status"`
	UpstreamID  word    `json:"upstream_request_id"`
	AbortSent   instant `json:"abort_sent"`
	AbortReason word    `json:"abort_reason"`
}

type limiterDoc struct {
	Decision  word   `json:"decision"`
	Dimension word   `json:"dimension"`
	Wait      millis `json:"wait_ms"`
}

type noteDoc struct {
	Setting string `json:"setting"`
	Action  string `json:"action"`
	Reason  string `json:"reason"`
}

type routeDoc struct {
	Strategy   word            `json:"strategy"`
	Considered []consideredDoc `json:"considered"`
}

type consideredDoc struct {
	Deployment string  `json:"deployment"`
	Score      float64 `json:"score"`
	Excluded   word    `json:"excluded"`
}

type engineDoc struct {
	Waiting count    `json:"waiting"`
	Running count    `json:"running"`
	KVUsed  *float64 `json:"kv_used"`
}

// word is a string that is null when empty.
type word string

// count is a number that is null when negative.
type count int64

func (c *count) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*c = Unknown
		return nil
	}
	return json.Unmarshal(b, (*int64)(c))
}

// millis is a duration in milliseconds with its fraction; null when negative.
type millis time.Duration

func (m *millis) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*m = Unknown
		return nil
	}
	var f float64
	err := json.Unmarshal(b, &f)
	*m = millis(f*1e6 + 0.5)
	return err
}

// instant is a time in UTC with nanoseconds; null when zero.
type instant struct{ time.Time }

// MarshalJSON renders the gap as [offset_ms, gap_ms].
func (g Gap) MarshalJSON() ([]byte, error) {
	e := encoder{}
	e.gap(g)
	return e.b, nil
}

// UnmarshalJSON reads [offset_ms, gap_ms].
func (g *Gap) UnmarshalJSON(b []byte) error {
	var pair []millis
	if err := json.Unmarshal(b, &pair); err != nil {
		return err
	}
	if len(pair) != 2 {
		return errors.New("cannot read gap: want [offset_ms, gap_ms]")
	}
	*g = NewGap(time.Duration(pair[0]), time.Duration(pair[1]))
	return nil
}
