package load

import (
	"context"
	"fmt"
	"time"
)

// Hold opens streams that stay silent after their first token, up to each level in turn (ascending), and calls at with all of them
// open. It closes them when at has returned for the last level. The plan's window and rate have no meaning here; Conns is how many
// streams may be opening at once.
func Hold(ctx context.Context, p Plan, levels []int, at func(level int) error) error {
	const opening = 30 * time.Second // for one level
	p.Tokens, p.Gap, p.Prefill, p.Whole = 2, time.Hour, 0, false
	r, err := newRun(p)
	if err != nil {
		return err
	}
	hard, cancel := context.WithCancel(ctx)
	defer func() { cancel(); r.wg.Wait() }()
	r.hard, r.bufSize = hard, 4<<10
	r.held = make(chan struct{}, maxConns)
	for _, level := range levels {
		if level > maxConns || level <= len(r.links) {
			return fmt.Errorf("cannot hold level=%d: levels ascend, up to %d", level, maxConns)
		}
		limit := time.NewTimer(opening)
		defer limit.Stop()
		open := len(r.links)
		for open < level {
			for len(r.links) < level && len(r.links)-open < r.plan.Conns {
				l := newLink(r, len(r.links))
				r.links = append(r.links, l)
				r.wg.Go(func() { l.exchange(Now()) })
			}
			select {
			case <-r.held:
				open++
			case <-limit.C:
				return fmt.Errorf("cannot hold level=%d: only %d streams began in %v", level, open, opening)
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		if err := at(level); err != nil {
			return err
		}
	}
	return nil
}
