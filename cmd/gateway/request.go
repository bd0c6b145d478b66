package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"tracegate/configs"
	"tracegate/trace"
	"tracegate/trace/export"
)

const (
	askLimit    = 10 * time.Second
	answerLimit = 64 << 20
	plainWidth  = 100 // columns, where the output is no terminal
)

// runRequest draws the timeline of a request.
func runRequest(args []string, stdout, stderr io.Writer) error {
	fs := newFlags("request", "ID", stdout, stderr)
	base := fs.String("admin", adminBase(), "`URL` of the admin listener, else GATEWAY_ADMIN; the key is taken from GATEWAY_ADMIN_KEY")
	asJSON := fs.Bool("json", false, "print the timeline as JSON")
	ids, err := fs.parse(args, 1)
	if err != nil {
		return err
	}
	body, err := ask(*base, "/api/v1/requests/"+url.PathEscape(ids[0]))
	if err != nil {
		return err
	}
	if *asJSON {
		_, err := stdout.Write(body)
		return err
	}
	var r trace.Record
	if err := json.Unmarshal(body, &r); err != nil {
		return fmt.Errorf("cannot read the timeline id=%s: %w", ids[0], err)
	}
	width, color := terminal(stdout)
	return export.Waterfall(stdout, &r, width, color)
}

// adminBase is where the admin listener is looked for when no flag says where.
func adminBase() string {
	return cmp.Or(os.Getenv("GATEWAY_ADMIN"), "http://"+configs.Default().Admin.Listen)
}

// adminURL is the URL that a person meant, who may leave the scheme out.
func adminURL(base string) string {
	if !strings.Contains(base, "://") {
		base = "http://" + base
	}
	return strings.TrimRight(base, "/")
}

// ask gets a path of the admin API.
func ask(base, path string) ([]byte, error) {
	base = adminURL(base)
	req, err := http.NewRequest(http.MethodGet, base+path, nil)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the gateway admin=%s: %w", base, err)
	}
	if key := os.Getenv("GATEWAY_ADMIN_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	client := &http.Client{Timeout: askLimit}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("cannot ask the gateway admin=%s: %w", base, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, answerLimit))
	if err != nil {
		return nil, fmt.Errorf("cannot read the gateway's answer admin=%s: %w", base, err)
	}
	if resp.StatusCode != http.StatusOK {
		var e struct{ Error struct{ Message string } }
		if json.Unmarshal(body, &e) != nil || e.Error.Message == "" {
			e.Error.Message = "status " + strconv.Itoa(resp.StatusCode)
		}
		if resp.StatusCode == http.StatusUnauthorized {
			e.Error.Message += " (it is taken from GATEWAY_ADMIN_KEY)"
		}
		return nil, fmt.Errorf("the gateway at %s says: %s", base, e.Error.Message)
	}
	return body, nil
}
