package fallback

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestChangesAreToldInOrderAndDatedToWhenTheyWereDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		start := time.Now()
		var told []string
		g.OnChange(func(from, to Standing) {
			told = append(told, fmt.Sprintf("%s>%s@%s", from.State, to.State, to.Since.Sub(start)))
			g.Standing() // no lock is held
		})
		one(t, g, asks(2*time.Second))
		time.Sleep(3 * time.Second)
		one(t, g, answered)
		opened(t, g)
		time.Sleep(time.Minute)
		g.Standing() // whoever asks next makes it known
		one(t, g, refused)
		time.Sleep(time.Minute)
		one(t, g, leaving)
		time.Sleep(time.Minute)
		one(t, g, answered)
		opened(t, g)
		g.Reset()
		want := "ready>cooling@0s cooling>ready@2s ready>open@3s open>half_open@8s half_open>open@1m3s open>half_open@1m13s " +
			"half_open>draining@2m3s draining>half_open@2m23s half_open>ready@3m3s ready>open@3m3s open>ready@3m3s"
		equal(t, "told", strings.Join(told, " "), want)
	})
}

func TestChangesFormOneChainUnderConcurrency(t *testing.T) {
	rules := usual
	rules.Time, rules.MaxTime = time.Microsecond, time.Microsecond
	g := NewGate(rules)
	var last, changes = Ready, 0 // unguarded: the gate tells one change at a time
	g.OnChange(func(from, to Standing) {
		if from.State != last || to.State == from.State {
			t.Errorf("%s > %s after %s", from.State, to.State, last)
		}
		last = to.State
		changes++
	})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for n := range 500 {
				p, ok := g.Allow()
				if !ok {
					p, ok = g.Probe()
				}
				if !ok {
					g.Blocked()
					continue
				}
				switch (n*7 + i) % 5 {
				case 0, 1:
					p.Content()
					p.End(answered)
				case 2:
					p.End(asks(time.Microsecond))
				case 3:
					p.End(leaving)
				default:
					p.End(broken)
				}
			}
		})
	}
	all.Wait()
	if changes == 0 {
		t.Error("nothing was told")
	}
}

// A hook that panics must not silence the ones after it.
func TestAPanicInTheHookIsItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		told := 0
		g.OnChange(func(from, to Standing) {
			told++
			if to.State == Cooling {
				panic("the hook's")
			}
		})
		func() {
			defer func() { equal(t, "panic", fmt.Sprint(recover()), "the hook's") }()
			one(t, g, asks(time.Second))
		}()
		time.Sleep(time.Second)
		one(t, g, answered)
		g.Standing()
		equal(t, "told", told, 2)
	})
}

// What the hook itself changes is told after it has returned.
func TestTheHookMayChangeTheGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate(usual)
		var told []string
		g.OnChange(func(_, to Standing) {
			told = append(told, "<"+string(to.State))
			if to.State == Open {
				g.Reset()
			}
			told = append(told, string(to.State)+">")
		})
		for range 3 {
			one(t, g, broken)
		}
		equal(t, "told", strings.Join(told, " "), "<open open> <ready ready>")
	})
}
