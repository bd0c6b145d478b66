package hangup

import (
	"io"
	"net"
	"testing"
	"time"
)

func BenchmarkWatchUnwatch(b *testing.B) {
	for _, tr := range transports {
		b.Run(tr.name, func(b *testing.B) {
			server, _ := connect(b, newWatcher(b), tr)
			leave := func() {}
			b.ReportAllocs()
			for b.Loop() {
				server.Watch(leave)
				server.Unwatch()
			}
		})
	}
}

// BenchmarkWrite writes tokens of 200 bytes over loopback.
func BenchmarkWrite(b *testing.B) {
	server, client := connect(b, newWatcher(b), transport{"tcp", tcpTransport})
	go io.Copy(io.Discard, client)
	server.SetStall(time.Minute)
	for _, to := range []struct {
		name string
		conn net.Conn
	}{{"net", server.NetConn()}, {"hangup", server}} {
		b.Run(to.name, func(b *testing.B) {
			token := make([]byte, 200)
			b.ReportAllocs()
			for b.Loop() {
				if _, err := to.conn.Write(token); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkDeparture is the time from the client's close to the call of leave.
func BenchmarkDeparture(b *testing.B) {
	w := newWatcher(b)
	inner, dial := tcpTransport(b)
	ln := NewListener(inner, w)
	defer ln.Close()
	left := make(chan struct{})
	for b.Loop() {
		b.StopTimer()
		client, err := dial()
		if err != nil {
			b.Fatal(err)
		}
		c, err := ln.Accept()
		if err != nil {
			b.Fatal(err)
		}
		Of(c).Watch(func() { left <- struct{}{} })
		b.StartTimer()
		client.Close()
		<-left
		b.StopTimer()
		c.Close()
		b.StartTimer()
	}
}
