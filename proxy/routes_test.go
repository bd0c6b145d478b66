package proxy

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
)

// Where a path leads: every spelling of a route comes out at the upstream in
// one way, and the query string byte for byte.

// upstreamPaths are the routes of the data plane and where they stand at a
// self-hosted engine.
var upstreamPaths = map[string]string{
	"/messages":              "/v1/messages",
	"/messages/count_tokens": "/v1/messages/count_tokens",
	"/chat/completions":      "/v1/chat/completions",
	"/completions":           "/v1/completions",
	"/responses":             "/v1/responses",
	"/embeddings":            "/v1/embeddings",
	"/rerank":                "/v1/rerank",
	"/score":                 "/v1/score",
	"/tokenize":              "/tokenize",
}

const anyBody = `{"model":"public","max_tokens":1,"prompt":"x","input":"x","messages":[{"role":"user","content":"x"}],"query":"x","documents":["x"],"text_1":"x","text_2":"x"}`

// goesTo posts to a path and returns where the engine got it, "" if it did not.
func (r *rig) goesTo(t *testing.T, path string) (upstream string, status int) {
	t.Helper()
	before := len(r.engine.Requests())
	a := r.post(path, anyBody)
	for len(r.finished) > 0 {
		<-r.finished
	}
	all := r.engine.Requests()
	if len(all) == before {
		return "", a.StatusCode
	}
	equal(t, "requests of "+path, len(all), before+1)
	return all[before].Path, a.StatusCode
}

func TestRoutes(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for path, want := range upstreamPaths {
		for _, prefix := range []string{"", "/v1", "/anthropic", "/anthropic/v1", "/openai", "/openai/v1"} {
			for _, suffix := range []string{"", "/", "?beta=true", "/?beta=true"} {
				query := ""
				if len(suffix) > 1 {
					query = "?beta=true"
				}
				got, _ := r.goesTo(t, prefix+path+suffix)
				equal(t, "upstream path of "+prefix+path+suffix, got, want+query)
			}
		}
	}
}

func TestSpellingsOfAPath(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for _, path := range []string{
		"//v1/messages", "/v1//messages", "//v1//messages", "///messages", "/v1/%6dessages", "/%76%31/messages", "/v1/messages%2F",
		"/v1/./messages", "/v1/x/../messages", "/anthropic//v1//messages//",
	} {
		got, status := r.goesTo(t, path)
		equal(t, "upstream path of "+path, got, "/v1/messages")
		equal(t, "status of "+path, status, 200)
	}
	for _, path := range []string{
		"/v2/messages", "/v1", "/v1/", "/message", "/Messages", "/v1messages", "/anthropicv1/messages", "/anthropic", "/openai/anthropic/messages",
		"//v2/messages", "//evil.test/messages", "//evil.test/v1/messages", "/v2%2fmessages?x=http://g/v1/messages",
		"/nothing", "/metrics", "/abort_request", "/v1/../abort_request", "/v1/%2e%2e/health", "/health", "/v1/messages/../../abort_request", "*",
	} {
		got, status := r.goesTo(t, path)
		equal(t, "upstream path of "+path, got, "")
		if status != 404 && status != 400 {
			t.Errorf("status of %s: %d", path, status)
		}
	}
}

// unusualTargets are sent on: their paths are plain once they are decoded.
var unusualTargets = []string{
	"/v1/audio/speech", "/v1/a-b_c.d~e/0", "/v1/...", "/v1/%61%2db", "/v1/a%2fb", "/v1/a%2F", "/v1//a", "/v1/./a", "/v1/b/../a", "/v1/b/%2e%2e/a", "/v1/%2e/a", "/v1/a/%2E%2e/a",
}

// badTargets would end the request line upstream, or mean another path to a
// server that decodes once more.
var badTargets = []string{
	"/v1/x%20HTTP/1.1%0d%0aHost:h%0d%0aContent-Length:0%0d%0a%0d%0aPOST%20/abort_request", "/v1/x%20y", "/v1/x%0ay", "/v1/x%0d", "/v1/x%00", "/v1/x%09", "/v1/%7f", "/v1/%80", "/v1/%c3%a9",
	"/v1/messages%20", "/v1/messages%00", "/openai/v1/x%0d%0a", "/v1/%252e%252e/abort_request", "/v1/%252e", "/v1/x%252f..", "/v1/%25", "/v1/x%zz", "/v1/%", "/v1/x%2",
	"/v1/x%3fa=b", "/v1/x%3F", "/v1/x%23y", "/v1/x#y", "/v1/messages#x", "/v1/messages?a=b#c", "/v1/messages?#", "/#", "/v1/..\\x", "/v1/x\\..\\y", "/v1/%5c..%5cx", "/v1/%5C",
	"/v1/x;y", "/v1/x:y", "/v1/x@y", "/v1/x,y", "/v1/x&y", "/v1/x=y", "/v1/x+y", "/v1/\"x\"", "/v1/<x>", "/v1/x\xff", "/v1/\u00e9", "/v1/messages?a=\u00e9", "/v1/messages?\x80", "/v1/messages?\u2028",
}

// TestBadTargets: refused at the door, and the connection with them.
func TestBadTargets(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for _, target := range badTargets {
		c := r.send(target, anyBody)
		br := bufio.NewReader(c)
		a := readFrom(t, br)
		if a.StatusCode != 400 || !a.Close {
			t.Errorf("status of %s: %d, close: %t", target, a.StatusCode, a.Close)
			continue
		}
		isErrorBody(t, dialects[1], a)
		contains(t, "message", string(a.body), "target")
		isClosed(t, br)
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}

func TestUnusualTargets(t *testing.T) {
	got := make(chan string, 1)
	up := newScripted(t, func(c net.Conn, req *http.Request, _ []byte) {
		got <- req.RequestURI
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
	})
	r := newRig(t, setup{upstream: up.url})
	paths := []string{"audio/speech", "a-b_c.d~e/0", "...", "a-b", "a/b", "a", "a", "a", "a", "a", "a", "a"}
	for i, target := range unusualTargets {
		if a := r.post(target, anyBody); a.StatusCode != 200 {
			t.Errorf("status of %s: %d", target, a.StatusCode)
			continue
		}
		equal(t, "upstream path of "+target, <-got, "/v1/"+paths[i])
	}
}

func TestQueryStrings(t *testing.T) {
	r := newRig(t, quickly(setup{}))
	for query, want := range map[string]string{
		"?beta=true":                      "?beta=true",
		"?a=1&b=%20+&c":                   "?a=1&b=%20+&c",
		"?a=b?c=d":                        "?a=b?c=d",
		"?a=%zz&b":                        "?a=%zz&b",
		"?b=2&a=1&b=1":                    "?b=2&a=1&b=1",
		"?key=" + wrongKey:                "",
		"?key=" + wrongKey + "&beta=true": "?beta=true",
		"?beta=true&api_key=" + wrongKey:  "?beta=true",
		"?a=1&access_token=" + wrongKey + "&b=%20+":      "?a=1&b=%20+",
		"?key=" + wrongKey + "&key=" + wrongKey + "&x=1": "?x=1",
		"?%6bey=" + wrongKey + "&x=%41":                  "?x=%41",
		"?api%5Fkey=" + wrongKey:                         "",
		"?monkey=1&keys=2&key_id=3&my_api_key=4":         "?monkey=1&keys=2&key_id=3&my_api_key=4",
		"?x=key=1":                                       "?x=key=1",
	} {
		got, _ := r.goesTo(t, "/v1/messages"+query)
		equal(t, "upstream path of "+query, got, "/v1/messages"+want)
	}
}

func TestMethods(t *testing.T) {
	r := newRig(t, setup{})
	for path := range upstreamPaths {
		for _, method := range []string{"GET", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"} {
			a := r.ask(method, "/v1"+path, "x-api-key: "+testKey)
			equal(t, "status of "+method+" "+path, a.StatusCode, 405)
			equal(t, "Allow", a.Header.Get("Allow"), "POST")
			r.record()
		}
	}
	a := r.ask("GET", "/v1/messages")
	equal(t, "without a key", a.StatusCode, 405)
	isErrorBody(t, dialects[0], a)
	for _, path := range []string{"/v1/models", "/livez", "/"} {
		a := r.ask("POST", path, "x-api-key: "+testKey, "Content-Length: 0")
		equal(t, "status of POST "+path, a.StatusCode, 405)
		equal(t, "Allow", a.Header.Get("Allow"), "GET, HEAD")
		isErrorBody(t, dialects[1], a)
	}
	equal(t, "requests at the engine", len(r.engine.Requests()), 0)
}
