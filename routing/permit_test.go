package routing

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"tracegate/fallback"
	"tracegate/trace"
)

func TestAPermitReturnedTwiceIsABug(t *testing.T) {
	d := model(t, table(t, nil, "")).Deployments[0]
	permit := place(d)
	end(&permit, trace.ResultOK, 1)
	defer func() {
		equal(t, "panic", fmt.Sprint(recover()), "BUG: a permit was returned twice")
		equal(t, "in flight", d.Live.Inflight(), 0)
	}()
	end(&permit, trace.ResultOK, 1)
}

func TestEveryResultIsCountedOnce(t *testing.T) {
	all := table(t, nil, "")
	d := model(t, all).Deployments[0]
	for _, r := range []trace.Result{trace.ResultOK, trace.ResultOK, trace.ResultFault, trace.ResultFault, trace.ResultFault,
		trace.ResultBackpressure, trace.ResultNotTheirs, trace.ResultClientAbort} {
		permit := place(d)
		end(&permit, r, 10)
	}
	equal(t, "counts", all.State()[0].Deployments[0].Counts, Counts{OK: 2, Fault: 3, Backpressure: 1, ClientError: 1, ClientAbort: 1})
	equal(t, "in flight", d.Live.Inflight(), 0)
}

func TestPlacesAreCountedFromManyGoroutines(t *testing.T) {
	m := model(t, table(t, nil, "", ""))
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 500 {
				permit := place(m.Pick(&Ask{Dialect: "chat"}).Deployment)
				end(&permit, trace.ResultOK, 1)
			}
		})
	}
	all.Wait()
	requests := int64(0)
	for _, d := range m.Deployments {
		equal(t, "in flight", d.Live.Inflight(), 0)
		requests += d.Live.requests.Load()
	}
	equal(t, "requests", requests, 4000)
}

func TestResultOfAFailure(t *testing.T) {
	for _, c := range []struct {
		failure fallback.Failure
		want    trace.Result
	}{
		{fallback.Failure{Kind: fallback.Cut}, trace.ResultFault},
		{fallback.Failure{Status: 500}, trace.ResultFault},
		{fallback.Failure{Status: 429}, trace.ResultBackpressure},
		{fallback.Failure{Status: 400}, trace.ResultNotTheirs},
		{fallback.Failure{Status: 500, Message: []byte("cannot schedule new futures after shutdown")}, trace.ResultNotTheirs},
		{fallback.Failure{Kind: fallback.ClientGone}, trace.ResultClientAbort},
		{fallback.Failure{Kind: fallback.WriteStall}, trace.ResultNotTheirs},
		{fallback.Failure{Kind: fallback.OperatorAbort}, trace.ResultNotTheirs},
	} {
		kind, verdict := fallback.Classify(c.failure)
		equal(t, string(kind), ResultOf(kind, verdict), c.want)
	}
}

func TestTheNewestFaultsAreRemembered(t *testing.T) {
	l := &Live{}
	for i := range 20 {
		l.Remember("cut", 500+i, fmt.Sprint("message ", i))
	}
	faults := l.lastFaults()
	equal(t, "kept", len(faults), keptFaults)
	equal(t, "oldest", faults[0].Message, "message 12")
	newest := faults[len(faults)-1]
	equal(t, "newest", newest.Message, "message 19")
	equal(t, "its kind", newest.Kind, "cut")
	equal(t, "its status", *newest.Status, 519)
	equal(t, "its time is UTC", newest.Time.Location().String(), "UTC")

	l.Remember("connect", 0, "refused")
	faults = l.lastFaults()
	if status := faults[len(faults)-1].Status; status != nil {
		t.Errorf("no status came, yet it is %d", *status)
	}
}

func TestALongMessageIsCutBetweenCharacters(t *testing.T) {
	for _, s := range []string{strings.Repeat("a", 300), strings.Repeat("é", 300), "a" + strings.Repeat("世", 300)} {
		l := &Live{}
		l.Remember("cut", 0, s)
		got := l.lastFaults()[0].Message
		kept, ok := strings.CutSuffix(got, "…")
		if !ok || !strings.HasPrefix(s, kept) || strings.ToValidUTF8(got, "?") != got || len(kept) > keptFaultLength || len(kept) < keptFaultLength-3 {
			t.Errorf("%q became %q", s[:10], got)
		}
	}
	l := &Live{}
	l.Remember("cut", 0, strings.Repeat("b", keptFaultLength))
	equal(t, "a message that fits", l.lastFaults()[0].Message, strings.Repeat("b", keptFaultLength))
}
