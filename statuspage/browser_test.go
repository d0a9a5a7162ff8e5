package statuspage_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"math"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache"
	"github.com/watchmirror/cache/cachetest"
	"github.com/watchmirror/cache/statuspage"
)

var pictures = flag.String("pictures", "", "write screenshots of all pages into this `folder`")

// browser returns the path of a Chromium, or skips the test if there is none.
func browser(t *testing.T) string {
	for _, name := range []string{"chromium", "google-chrome", "chromium-browser"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("there is no Chromium")
	return ""
}

// shop fills a registry like a program of a shop, and returns it once there is a history.
func shop(t *testing.T) *statuspage.Registry {
	registry := &statuspage.Registry{Interval: 20 * time.Millisecond}
	if *pictures != "" {
		registry.Interval = 60 * time.Millisecond
	}
	pods, secrets, nodes := newSource(t, "Pod", 300), newSource(t, "Secret", 12), newSource(t, "Node", 0)
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
	server := httptest.NewServer(statuspage.Handler(shop(t)))
	defer server.Close()
	folder, all := *pictures, *pictures != ""
	if !all {
		folder = t.TempDir()
	}
	for name, query := range map[string]string{"overview": "", "one": "?name=pods", "failing": "?name=nodes", "keys": "?name=pods&prefix=shop/", "object": "?name=secrets&key=shop/web-0000"} {
		for _, width := range []int{1280, 500} {
			for _, scheme := range []string{"light", "dark"} {
				if !all && name != "one" {
					continue
				}
				file := filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, scheme))
				messages := screenshot(t, chromium, server.URL+"/"+query, file, width, scheme)
				assert.NotContains(t, messages, "CONSOLE", "the browser reports a problem of %s", name)
				text, err := os.ReadFile(file)
				require.NoError(t, err)
				picture, err := png.Decode(bytes.NewReader(text))
				require.NoError(t, err)
				assert.Equal(t, width, picture.Bounds().Dx())
				assert.Equal(t, scheme == "dark", isDark(picture), "the mean brightness of %s", file)
			}
		}
	}
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

// screenshot returns the browser's output.
func screenshot(t *testing.T, chromium, url, file string, width int, scheme string) string {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	profile, err := os.MkdirTemp("", "chromium") // not t.TempDir: its processes may still write when the command has ended
	require.NoError(t, err)
	defer os.RemoveAll(profile)
	preferred := map[string]string{"dark": "0", "light": "1"}[scheme]
	command := exec.CommandContext(ctx, chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
		"--user-data-dir="+profile, "--blink-settings=preferredColorScheme="+preferred,
		fmt.Sprintf("--window-size=%d,900", width), "--screenshot="+file, url)
	output, err := command.CombinedOutput()
	require.NoError(t, err, string(output))
	return string(output)
}
