package statuspage_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"html"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

var pictures = flag.String("pictures", "", "write screenshots of all pages into this `folder`")

var picturedPages = flag.String("pages", "", "only screenshots of these `pages`, wide and light, without their suffix")

// browser returns the path of a Chromium, or skips the test if there is none.
func browser(t *testing.T) string {
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("not run: there is no Chromium")
	return ""
}

// shop fills a registry like a program of a shop, and returns it once there is a history.
func shop(t *testing.T) *statuspage.Registry {
	registry := &statuspage.Registry{Interval: 20 * time.Millisecond}
	if *pictures != "" {
		registry.Interval = 60 * time.Millisecond
	}
	pods := newSource(t, "Pod", 300)
	secrets := newSource(t, "Secret", 12)
	nodes := newSource(t, "Node", 0)
	add(t, registry, "jobs", newInformer("jobs", newSource(t, "Job", 0)))
	nodes.FailRequests(cachetest.Forever, cachetest.ErrConnectionRefused())
	sources := map[string]*cachetest.Source{"pods": pods, "secrets": secrets, "nodes": nodes}
	for name, source := range sources {
		informer := newInformer(name, source)
		_, err := informer.AddHandler(cache.TypedResourceEventHandlerFuncs[object]{}, cache.HandlerOptions{Name: "controller"})
		require.NoError(t, err)
		add(t, registry, name, informer)
		t.Cleanup(start(t, running(informer)))
	}
	t.Cleanup(start(t, func(ctx context.Context) {
		for i := 0; ctx.Err() == nil; i++ {
			for j := range int(6 + 5*math.Sin(float64(i)/9) + 2*math.Sin(float64(i)*2)) {
				pods.MustApply(t, newObject("Pod", "shop", fmt.Sprintf("web-%04d", (i*20+2*j)%600)))
			}
			wait(ctx, registry.Interval)
		}
	}))
	wait(t.Context(), 20*registry.Interval)
	t.Cleanup(start(t, registry.Run))
	wait(t.Context(), 60*registry.Interval)
	return registry
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// Fails if a page needs anything that its policy forbids, or if the browser cannot draw it.
func TestABrowserShowsThePagesWideAndNarrowLightAndDark(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	chromium := browser(t)
	server := httptest.NewServer(framed(statuspage.Handler(shop(t))))
	defer server.Close()
	folder := *pictures
	all := folder != ""
	if !all {
		folder = t.TempDir()
	}
	for name, query := range map[string]string{
		"overview": "", "cache": "?name=pods", "failing": "?name=nodes", "keys": "?name=pods&prefix=shop/",
		"object": "?name=secrets&key=shop/web-0000", "error": "?name=pods&key=shop/none", "unknown": "?name=none",
		"memory": "?name=pods&memory",
	} {
		for _, width := range []int{1280, phone} {
			for _, scheme := range []string{"light", "dark"} {
				file := filepath.Join(folder, fmt.Sprintf("statuspage-%s-%d-%s.png", name, width, scheme))
				switch {
				case *picturedPages != "":
					isWanted := slices.Contains(strings.Split(*picturedPages, ","), name)
					if !isWanted || width == phone || scheme == "dark" {
						continue
					}
					file = filepath.Join(folder, "statuspage-"+name+".png")
				case !all && name != "cache":
					continue
				}
				messages := screenshot(t, chromium, pageURL(server.URL, query, width), file, width, scheme)
				assert.NotContains(t, messages, "CONSOLE", "the browser reports a problem of %s", name)
				picture := crop(t, file, width)
				assert.Equal(t, width, picture.Bounds().Dx())
				assert.Equal(t, scheme == "dark", isDark(picture), "the mean brightness of %s", file)
			}
		}
	}
}

// phone is the width of a phone. A window of Chromium is at least 500 wide, so the page is in a
// frame.
const phone = 390

func pageURL(server, query string, width int) string {
	if width == phone {
		return server + "/frame" + query
	}
	return server + "/" + query
}

// framed serves a page also in a frame as wide as a phone, for which the page's policy is relaxed.
func framed(pages http.Handler) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", pages)
	mux.HandleFunc("/frame", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!DOCTYPE html><meta name="color-scheme" content="light dark"><body style="margin:0">`+
			`<iframe style="border:0;width:%dpx;height:2000px" src="/framed?%s"></iframe>`,
			phone, html.EscapeString(r.URL.RawQuery))
	})
	mux.HandleFunc("/framed", func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(frameable{w}, r)
	})
	return mux
}

// frameable permits that the page is shown in a frame.
type frameable struct{ http.ResponseWriter }

func (f frameable) WriteHeader(code int) {
	const policy = "Content-Security-Policy"
	f.Header().Set(policy, strings.ReplaceAll(f.Header().Get(policy), "; frame-ancestors 'none'", ""))
	f.ResponseWriter.WriteHeader(code)
}

// crop crops a picture to a width, and returns it.
func crop(t *testing.T, file string, width int) image.Image {
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	picture, err := png.Decode(bytes.NewReader(text))
	require.NoError(t, err)
	if picture.Bounds().Dx() == width {
		return picture
	}
	cropped := image.NewRGBA(image.Rect(0, 0, width, picture.Bounds().Dy()))
	draw.Draw(cropped, cropped.Bounds(), picture, image.Point{}, draw.Src)
	var encoded bytes.Buffer
	require.NoError(t, png.Encode(&encoded, cropped))
	require.NoError(t, os.WriteFile(file, encoded.Bytes(), 0o644))
	return cropped
}

// isDark is true if the pixels are, in the mean, nearer to black than to white.
func isDark(picture image.Image) bool {
	sum, bounds := uint64(0), picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			sum += uint64(color.Gray16Model.Convert(picture.At(x, y)).(color.Gray16).Y)
		}
	}
	return sum/uint64(bounds.Dx()*bounds.Dy()) < 1<<15
}

func heightOf(width int) int {
	if width == phone {
		return 1700
	}
	return 1000
}

// screenshot returns the browser's output.
func screenshot(t *testing.T, chromium, url, file string, width int, scheme string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	profile, err := os.MkdirTemp("", "chromium") // not t.TempDir: its processes may still write when the command has ended
	require.NoError(t, err)
	defer os.RemoveAll(profile)
	preferred := map[string]string{"dark": "0", "light": "1"}[scheme]
	command := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
		"--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir="+profile, "--blink-settings=preferredColorScheme="+preferred,
		fmt.Sprintf("--window-size=%d,%d", max(width, 500), heightOf(width)), "--screenshot="+file, url)
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return string(output)
}
