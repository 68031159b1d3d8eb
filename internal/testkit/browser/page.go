package browser

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// Screen is what a page is shown on.
type Screen struct {
	Name          string
	Width, Height int // of the viewport, in CSS pixels
	Phone         bool
	Dark          bool // what the user prefers
}

// Screens are those that a page has to suit.
var Screens = []Screen{
	{"phone-light", 360, 740, true, false}, {"phone-dark", 390, 844, true, true},
	{"desk-light", 1280, 900, false, false}, {"desk-dark", 1440, 900, false, true},
}

// Page is what came of showing a page.
type Page struct {
	Requests []string // of anything but the page itself and data that it holds
	Console  []string // errors, warnings and messages
	Picture  []byte   // PNG of the whole page
	b        *Browser
}

// Show loads a page on a screen. The Page can be asked until the next Show.
func (b *Browser) Show(url string, s Screen) (*Page, error) {
	p := &Page{b: b}
	scheme := "light"
	if s.Dark {
		scheme = "dark"
	}
	if err := b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": s.Width, "height": s.Height, "deviceScaleFactor": 1, "mobile": s.Phone}, nil, nil); err != nil {
		return nil, err
	}
	features := []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}
	if err := b.call("Emulation.setEmulatedMedia", map[string]any{"features": features}, nil, nil); err != nil {
		return nil, err
	}
	loaded := make(map[string]bool) // by load: that of the page before may end now
	see := func(m message) {
		if load := m.load(); load != "" {
			loaded[load] = true
		}
		p.take(m, url)
	}
	var went struct {
		Load  string `json:"loaderId"`
		Error string `json:"errorText"`
	}
	if err := b.call("Page.navigate", map[string]any{"url": url}, &went, see); err != nil {
		return nil, err
	}
	if went.Error != "" {
		return nil, fmt.Errorf("browser: %s: %s", url, went.Error)
	}
	if !loaded[went.Load] {
		if _, err := b.until(see, func(m message) bool { return m.load() == went.Load }); err != nil {
			return nil, fmt.Errorf("browser: %s: %w", url, err)
		}
	}
	return p, p.picture(see)
}

// load returns which load of a page, or of a frame, the message says to be done, or "".
func (m message) load() string {
	var e struct{ Name, LoaderID string }
	if m.Method != "Page.lifecycleEvent" || json.Unmarshal(m.raw, &e) != nil || e.Name != "load" {
		return ""
	}
	return e.LoaderID
}

// picture draws the whole page, however long it is.
func (p *Page) picture(see func(message)) error {
	var shot struct {
		Data string `json:"data"`
	}
	err := p.b.call("Page.captureScreenshot", map[string]any{"format": "png", "captureBeyondViewport": true}, &shot, see)
	if err == nil {
		p.Picture, err = base64.StdEncoding.DecodeString(shot.Data)
	}
	return err
}

// take keeps what an event tells of requests and of the console.
func (p *Page) take(m message, url string) {
	switch m.Method {
	case "Network.requestWillBeSent":
		var e struct {
			Request struct {
				URL string `json:"url"`
			} `json:"request"`
		}
		if json.Unmarshal(m.raw, &e) == nil && e.Request.URL != url && !strings.HasPrefix(e.Request.URL, "data:") {
			p.Requests = append(p.Requests, e.Request.URL)
		}
	case "Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown":
		p.Console = append(p.Console, string(m.raw))
	}
}

// Eval evaluates JavaScript in the page, and reads its result as JSON into what v points to.
func (p *Page) Eval(script string, v any) error {
	var answer struct {
		Result struct {
			Value json.RawMessage `json:"value"`
		} `json:"result"`
		Exception *struct {
			Text string `json:"text"`
		} `json:"exceptionDetails"`
	}
	if err := p.b.call("Runtime.evaluate", map[string]any{"expression": script, "returnByValue": true}, &answer, nil); err != nil {
		return err
	}
	if answer.Exception != nil {
		return fmt.Errorf("browser: %s: %s", script, answer.Exception.Text)
	}
	return json.Unmarshal(answer.Result.Value, v)
}
