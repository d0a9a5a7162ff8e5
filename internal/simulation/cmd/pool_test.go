package main

import (
	"bytes"
	"context"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/watchmirror/cache/internal/simulation/script"
)

// one is a script of one step.
func one(do, what string) script.Script {
	return script.Script{Seed: 5, Steps: []script.Step{{Do: do, What: what}}}
}

func TestAWorkerAnswersEachScriptWithItsResult(t *testing.T) {
	var in, out, said bytes.Buffer
	for seed := range uint64(3) {
		in.Write(append(script.Script{Seed: seed + 1<<63}.Encode(), '\n'))
	}
	require.NoError(t, serve(&in, &out, &said, func(s script.Script) script.Result {
		return script.Result{Seed: s.Seed, Trace: make([]string, traceKept+1)}
	}))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Contains(t, lines[2], `"seed":9223372036854775810`)
	require.Equal(t, traceKept-1, strings.Count(lines[2], `"",`))
	require.Equal(t, strings.Repeat(string(newScript), 3), said.String())
}

func TestAWorkerEndsAtInputThatIsNoScript(t *testing.T) {
	err := serve(strings.NewReader(`{"seed":1}`+"\nnothing\n"), io.Discard, io.Discard, (&actor{}).act)
	require.ErrorContains(t, err, "reading a script")
}

func TestAWorkerThatDiesIsAFailureOfItsScriptAndTheNextGetsAnother(t *testing.T) {
	p := newPool(fake, 1, time.Minute)
	defer p.close()
	for _, death := range []struct{ do, what, failure, trace string }{
		{"panic", "at the disco", "panic: at the disco", "goroutine "},
		{"panic", "deadlock: all goroutines in bubble are blocked", "deadlock: panic: deadlock: all goroutines in bubble are blocked", "goroutine "},
		{"exit", "WARNING: DATA RACE", "data race: see the stacks", "DATA RACE"},
		{"exit", "WARNING: DATA RACE\n  rand()\n  github.com/watchmirror/cache.(*run).go()", "data race: (*run).go()", "rand"},
		{"exit", "no more", "died: exit status 3 (EOF)", "no more"},
		{"garbage", "", "died: exit status 0 (invalid character 'o' in literal null (expecting 'u'))", ""},
	} {
		result, err := p.run(t.Context(), one(death.do, death.what))
		require.NoError(t, err)
		require.Len(t, result.Failures, 1)
		require.Equal(t, death.failure, result.Failures[0])
		require.EqualValues(t, 5, result.Seed)
		require.Contains(t, strings.Join(result.Trace, "\n"), death.trace)

		result, err = p.run(t.Context(), one("write", ""))
		require.NoError(t, err)
		require.Empty(t, result.Failures)
		require.Equal(t, 1000, result.Checks)
	}
}

func TestOneWorkerRunsManyScripts(t *testing.T) {
	started := 0
	p := newPool(func() (*exec.Cmd, error) {
		started++
		return fake()
	}, 1, time.Minute)
	defer p.close()
	for range 20 {
		_, err := p.run(t.Context(), one("write", ""))
		require.NoError(t, err)
	}
	require.Equal(t, 1, started)
}

func TestWhatAWorkerSaidOfAnEarlierScriptIsNoCauseOfALaterDeath(t *testing.T) {
	p := newPool(fake, 1, time.Minute)
	defer p.close()
	_, err := p.run(t.Context(), one("chatter", ""))
	require.NoError(t, err)
	result, err := p.run(t.Context(), one("exit", "no more"))
	require.NoError(t, err)
	require.Equal(t, script.DeathOther, result.Kind())
}

func TestAScriptThatTakesTooLongHasFailedAndShowsItsStacks(t *testing.T) {
	p := newPool(fake, 1, time.Minute)
	defer p.close()
	// The limit counts from when the script is sent: to a worker that runs already, or
	// it might be over before there is anything that could hang.
	_, err := p.run(t.Context(), one("write", ""))
	require.NoError(t, err)
	result, err := p.runWithin(t.Context(), one("hang", ""), 2*time.Second)
	require.NoError(t, err)
	require.Equal(t, []string{"hang: the script took longer than 2s of real time"}, result.Failures)
	stacks := strings.Join(result.Trace, "\n")
	require.Contains(t, stacks, "cmd.(*actor).act(")
	require.NotContains(t, stacks, "runtime.bgsweep", "what has nothing to do with us is left out")

	result, err = p.run(t.Context(), one("write", ""))
	require.NoError(t, err)
	require.Empty(t, result.Failures)
}

func TestAnInterruptedScriptHasNoResult(t *testing.T) {
	p := newPool(fake, 1, time.Minute)
	defer p.close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	result, err := p.run(ctx, one("hang", ""))
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.Empty(t, result)
	_, err = p.run(ctx, one("write", ""))
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

func TestRemarksKeepTheirBeginningAndTheirEnd(t *testing.T) {
	r := &workerOutput{}
	for _, text := range []string{"begin", strings.Repeat("a", remarksHead), strings.Repeat("b", 5*remarksTail), "end"} {
		n, err := r.Write([]byte(text))
		require.NoError(t, err)
		require.Equal(t, len(text), n)
	}
	said := r.String()
	require.True(t, strings.HasPrefix(said, "begina"))
	require.True(t, strings.HasSuffix(said, "bend"))
	require.Contains(t, said, "a\n...\nb")
	require.Len(t, said, remarksHead+remarksTail+len("\n...\n"))

	_, err := r.Write([]byte("the end" + string(newScript) + "of one" + string(newScript) + "the "))
	require.NoError(t, err)
	_, err = r.Write([]byte("next"))
	require.NoError(t, err)
	require.Equal(t, "the next", r.String())
}

func TestNumbersAreReadable(t *testing.T) {
	require.Equal(t, "999999", count(999_999))
	require.Equal(t, "3.4 million", count(3_400_000))
	require.Equal(t, "38", perSecond(76, 2*time.Second))
	require.Equal(t, "0.5", perSecond(1, 2*time.Second))
	require.Equal(t, "3 of 9 (G2: 1, panic: 2)", rate(script.Replayed{Runs: 9, Kinds: map[string]int{"panic": 2, "G2": 1}}))
	require.Equal(t, "1 of 9", rate(script.Replayed{Runs: 9, Kinds: map[string]int{"G2": 1}}))
}
