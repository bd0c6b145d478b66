package routing

import (
	"testing"
	"testing/synctest"
	"time"

	"tracegate/trace"
)

// waiting is the state of the model's queue with one in it who has tried in vain.
func waiting(t *testing.T, all *Table, m *Model) *Waiter {
	t.Helper()
	w, ok := m.Live.Queue.Enter("t", 0, 1, 5, time.Now())
	if !ok {
		t.Fatal("the queue is full")
	}
	select {
	case <-w.Turn(): // the first try
		w.Again()
	default:
	}
	equal(t, "waiting", all.State()[0].Queue.Waiting, 1)
	return w
}

func hasTurn(w *Waiter) bool {
	select {
	case <-w.Turn():
		return true
	default:
		return false
	}
}

func TestAPlaceGivenBackIsSignalled(t *testing.T) {
	all := table(t, nil, "max_inflight: 1")
	m := model(t, all)
	p := place(m.Deployments[0])
	w := waiting(t, all, m)
	equal(t, "while it is taken", hasTurn(w), false)
	end(&p, trace.ResultOK, 1)
	equal(t, "when it is free", hasTurn(w), true)
	w.Leave()
	equal(t, "nobody waits", all.State()[0].Queue.Waiting, 0)
}

// The trial's stream may go on for minutes after its first token closed the gate.
func TestAGateThatClosesIsSignalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		all := table(t, nil, "cooldown: {time: 1s}")
		m := model(t, all)
		fails(m.Deployments[0], 4, failed)
		time.Sleep(time.Second)
		trial := place(m.Deployments[0])
		w := waiting(t, all, m)
		equal(t, "during the trial", hasTurn(w), false)
		trial.Content(time.Second)
		equal(t, "when it has content", hasTurn(w), true)
		w.Leave()
		end(&trial, trace.ResultOK, 1)
	})
}
