package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/yeolda/yeolda/firmware-sim/proof/world"
)

// grant is a key and the branch it opens.
type grant struct{ branch, key string }

// start starts the system with a fleet of simulated branches and a current reservation in each.
func start(ctx context.Context, root, dir string, agents int, log io.Writer) (*world.Stack, []grant, error) {
	file := filepath.Join(dir, "fleet.yaml")
	write := exec.CommandContext(ctx, filepath.Join(dir, world.Simulator), "fleet", "--agents", strconv.Itoa(agents), "--write-branches", file)
	if out, err := write.CombinedOutput(); err != nil {
		return nil, nil, fmt.Errorf("branch file: %w\n%s", err, out)
	}
	s, err := world.StartStack(ctx, world.StackOptions{
		Root: root, Bin: dir, Dir: dir, Log: log,
		Env:      map[string]string{"YEOLDA_RATE_LIMITS": "off"},
		Branches: []string{filepath.Join(root, "deploy/demo/branches.yaml"), file},
		SimArgs:  []string{"fleet", "--agents", strconv.Itoa(agents)},
	})
	if err != nil {
		return nil, nil, err
	}
	keys, err := reserve(ctx, s, agents)
	if err == nil {
		err = awaitFleet(ctx, s, keys)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Stop())
	}
	return s, keys, nil
}

// reserve registers a reservation of two hours from now in room 1 of every branch and returns the keys.
func reserve(ctx context.Context, s *world.Stack, agents int) ([]grant, error) {
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	session := client.Jar
	client.Jar = jar
	defer func() { client.Jar = session }()
	if err := post(ctx, s.API+"/admin/login", `{"id":"hq","password":"hq-demo"}`, nil); err != nil {
		return nil, err
	}
	keys := make([]grant, 0, agents)
	for i := range agents {
		begin := time.Now().In(time.FixedZone("KST", 9*3600)).Truncate(10 * time.Minute) // each time: a slot may end in between
		branch, mobile := fmt.Sprintf("load-%04d", i+1), fmt.Sprintf("010%08d", i+1)
		hold := fmt.Sprintf(`{"branch":%q,"room":1,"startDateTime":%q,"endDateTime":%q}`,
			branch, begin.Format("200601021504"), begin.Add(2*time.Hour).Format("200601021504"))
		if err := post(ctx, s.API+"/admin/reservation", hold, nil); err != nil {
			return nil, err
		}
		if err := post(ctx, s.API+"/admin/payment", `{"name":"load","mobileNum":"`+mobile+`","notify":true}`, nil); err != nil {
			return nil, err
		}
		key, err := keyOf(ctx, s, mobile)
		if err != nil {
			return nil, err
		}
		keys = append(keys, grant{branch, key})
	}
	return keys, nil
}

// keyOf waits for the message with a key.
func keyOf(ctx context.Context, s *world.Stack, mobile string) (string, error) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.SandboxAt+"/sandbox/messages?to="+mobile, nil)
		if err != nil {
			return "", err
		}
		response, err := client.Do(request)
		if err != nil {
			return "", err
		}
		var list struct {
			Messages []struct {
				Variables map[string]string `json:"variables"`
			} `json:"messages"`
		}
		err = json.NewDecoder(response.Body).Decode(&list)
		response.Body.Close()
		if err != nil {
			return "", err
		}
		for _, m := range list.Messages {
			if key := m.Variables["doorlockKey"]; key != "" {
				return key, nil
			}
		}
	}
	return "", fmt.Errorf("no key for %s", mobile)
}

// awaitFleet opens every door once, which shows that its agent is online.
func awaitFleet(ctx context.Context, s *world.Stack, keys []grant) error {
	for _, key := range keys {
		press := unlocker(s.API, []grant{key})
		for tries := 0; ; tries++ {
			ok, err := press(ctx, 0)
			if err != nil && !strings.Contains(err.Error(), "503") {
				return err
			}
			if ok {
				break
			}
			if tries == 20 {
				return fmt.Errorf("%s does not open", key.branch)
			}
			time.Sleep(100 * time.Millisecond)
		}
	}
	return nil
}
