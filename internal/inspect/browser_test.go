package inspect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

// chromium returns a browser without a window, "" if there is none.
func chromium() string {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// probe is a page that shows another one in a frame of some width, and says what it looks
// like there.
const probe = `<!DOCTYPE html><link rel="icon" href="data:,"><title>waiting</title><style>:root { color-scheme: %[2]s }</style>
<iframe src="/" style="width:%[1]dpx;height:800px;border:0" onload="
  const d = this.contentDocument, e = d.documentElement;
  document.title = [
    'overflow', e.scrollWidth - e.clientWidth,
    'images', d.images.length, 'broken', [...d.images].filter(i => !i.naturalWidth).length,
    'plots', [...d.querySelectorAll('.plot path')].filter(p => p.getBBox().width > 0 && p.getBBox().height > 0).length,
    'unnamed', [...d.querySelectorAll('svg[role=img]:not([aria-label]), img:not([alt])')].length,
    'paper', this.contentWindow.getComputedStyle(d.body).backgroundColor,
    'end'].join(' ');
"></iframe>`

// dark and light are the colours of paper in the style sheet.
const (
	darkPaper  = "rgb(21, 24, 28)"
	lightPaper = "rgb(251, 251, 249)"
)

func TestReportInABrowser(t *testing.T) {
	browser := chromium()
	if browser == "" {
		t.Skip("no chromium to open the page in (apt-get install chromium)")
	}
	html := page(t, compile(t, zoo(t), ReportOptions{}))
	for _, c := range []struct {
		width int
		dark  bool
		paper string
	}{{360, false, lightPaper}, {360, true, darkPaper}, {1280, false, lightPaper}, {1280, true, darkPaper}} {
		t.Run(fmt.Sprintf("%d pixels, dark %v", c.width, c.dark), func(t *testing.T) {
			dom, console, requests := visit(t, browser, html, c.width, c.dark)
			if len(console) > 0 || strings.Join(requests, " ") != "/probe /" {
				t.Errorf("console %q, requests %q", console, requests)
			}
			title := regexp.MustCompile(`<title>(.*)</title>`).FindStringSubmatch(dom)
			if title == nil {
				t.Fatalf("no page: %s", dom)
			}
			want := fmt.Sprintf("overflow 0 images %d broken 0 plots 3 unnamed 0 paper %s end", strings.Count(html, "<img "), c.paper)
			if title[1] != want {
				t.Errorf("it is %q, want %q", title[1], want)
			}
		})
	}
}

// A page that asks for something or complains would be found out.
func TestVisitNotices(t *testing.T) {
	browser := chromium()
	if browser == "" {
		t.Skip("no chromium to open a page in (apt-get install chromium)")
	}
	dom, console, requests := visit(t, browser, `<img src="/x.png" style="width:2000px"><script>console.error("oops")</script>`, 360, false)
	if len(console) == 0 || !strings.Contains(strings.Join(requests, " "), "/x.png") || strings.Contains(dom, "overflow 0") {
		t.Errorf("console %q, requests %q, page %s", console, requests, dom)
	}
}

// visit opens a page and returns the probe after that, what the browser wrote to its console,
// and what it asked the server for.
func visit(t *testing.T, browser, html string, width int, dark bool) (dom string, console, requests []string) {
	t.Helper()
	scheme, preferred := "light", 1
	if dark {
		scheme, preferred = "dark", 0
	}
	var mu sync.Mutex
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		requests = append(requests, r.URL.Path)
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		switch r.URL.Path {
		case "/probe":
			fmt.Fprintf(w, probe, width, scheme)
		case "/":
			fmt.Fprint(w, html)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
		"--no-first-run", "--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
		"--user-data-dir="+filepath.Join(t.TempDir(), "profile"), fmt.Sprintf("--blink-settings=preferredColorScheme=%d", preferred),
		fmt.Sprintf("--window-size=%d,900", width+40), "--virtual-time-budget=10000", "--dump-dom", server.URL+"/probe")
	var log strings.Builder
	cmd.Stderr = &log
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", browser, err, log.String())
	}
	for _, line := range strings.Split(log.String(), "\n") {
		if strings.Contains(line, "CONSOLE") {
			console = append(console, line)
		}
	}
	mu.Lock()
	defer mu.Unlock()
	return string(out), console, requests
}
