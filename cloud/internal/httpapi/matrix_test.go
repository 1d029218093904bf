package httpapi_test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/contract"
	"github.com/yeolda/yeolda/cloud/internal/httpapi"
	"github.com/yeolda/yeolda/cloud/internal/servicetest"
)

// routes returns all routes as METHOD /path/{}, without the names of parameters.
func routes(t *testing.T) []string {
	t.Helper()
	list := patterns(t)
	for i := range list {
		list[i] = anonymous(list[i])
	}
	return list
}

// patterns returns all routes as METHOD /path/{name}.
func patterns(t *testing.T) []string {
	t.Helper()
	api := &httpapi.API{Discord: http.NotFoundHandler()}
	var list []string
	err := chi.Walk(api.Routes().(chi.Routes), func(method, route string, _ http.Handler, _ ...func(http.Handler) http.Handler) error {
		list = append(list, method+" "+route)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func anonymous(path string) string {
	return regexp.MustCompile(`\{[^}]*\}`).ReplaceAllString(path, "{}")
}

// openapi.yaml and the router have the same routes.
func TestRoutesAreDescribed(t *testing.T) {
	t.Parallel()
	var described []string
	for _, o := range contract.Operations() {
		described = append(described, o.Method+" "+anonymous(o.Path))
	}
	served := routes(t)
	for _, route := range served {
		if !slices.Contains(described, route) {
			t.Errorf("%s is served and not described", route)
		}
	}
	for _, route := range described {
		if !slices.Contains(served, route) {
			t.Errorf("%s is described and not served", route)
		}
	}
}

// reply is the part of an answer that is compared. An empty errorType is a success.
type reply struct {
	status    int
	errorType string
	message   string
}

var (
	success       = reply{200, "", ""}
	noSuchSession = reply{401, "AuthenticationError", "인증되지 않은 사용자입니다."}
	notAuthorized = reply{403, "AuthorizationError", "인가되지 않은 사용자입니다."}
	outOfScope    = reply{403, "AuthorizationException", "해당 지점에 접근 권한이 없습니다."}
	holdExpired   = reply{401, "ResourceTimeOutException", "예약 세션이 만료되었습니다."}
	noRefundLink  = reply{404, "ResourceNotFoundException", "해당 환불 링크를 찾을 수 없습니다."}
	noReservation = reply{404, "ResourceNotFoundException", "해당 예약을 찾을 수 없습니다."}
	deviceAway    = reply{503, "DeviceUnavailableException", "지점 장치가 응답하지 않습니다."}
	versionEnded  = reply{410, "ApiVersionEndedException", "종료된 API입니다. V2 API를 사용해 주세요."}
)

func missingField(korean, field string) reply {
	return reply{400, "IllegalArguemntError", korean + "(" + field + ") 값은 필수입니다."}
}

// probe is a request that changes nothing even if the role is authorized, and the expected answer in that case.
type probe struct {
	path   string
	body   any
	want   reply
	scoped bool // the request concerns gangnam, so a manager of another branch is out of scope
}

// probes are keyed by operation id of openapi.yaml, whose x-access defines the roles that may call it.
func probes(t *testing.T, c *cast) map[string]probe {
	start := c.start // start of the reservation that newCast creates
	paid := reservationAt(t, c.s, 1, start)
	order(t, c.s, c.s.Client(t), 2, start, time.Hour, 25000, "카드")
	inTheWay := wire(start)
	door := requestID(t, c.Manager, adminUnlock+"gangnam/front", nil)
	raised := only(t, c.s, `insert into alert (kind, branch, since, acknowledged_by) values ('door-held', 'gangnam', now(), 'hq') returning id || '/acknowledge'`)
	option := "qk3tq5n2w7zlx4m6r2vd"
	if _, err := c.s.DB.Pool.Exec(t.Context(), `
		insert into airconditioner_option (id, branch_id, unit, path) select $1, id, '거실', '{끄기}' from branch where code = 'gangnam'`, option); err != nil {
		t.Fatal(err)
	}
	lookUp := "branch=gangnam&base_date=20261125&base_hour=10"
	login := missingField("로그인 방식", "type")
	console := "/v2/admin/branches/gangnam/"
	notThere := func(what string) reply {
		return reply{404, "ResourceNotFoundException", "해당 " + what + " 찾을 수 없습니다."}
	}
	unknownKey := reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}
	return map[string]probe{
		"slotsV1":                {"/reservations?" + lookUp, nil, success, false},
		"calendar":               {"/v2/branches/gangnam/calendar?yearMonth=2026-12", nil, success, false},
		"slotsV2":                {"/v2/branches/gangnam/reservations?date=2026-11-25&baseHour=10", nil, success, false},
		"hold":                   {"/reservation", "{}", missingField("지점", "branch"), false},
		"release":                {"/reservation", nil, success, false},
		"registerPayment":        {"/payment", map[string]any{"amount": 1, "name": "a", "mobileNum": "01012345678"}, holdExpired, false},
		"confirmPayment":         {"/payment/confirm", map[string]any{"amount": 1, "paymentKey": "a", "orderId": "none"}, reply{404, "ResourceNotFoundException", "해당 주문을 찾을 수 없습니다."}, false},
		"cancelPayment":          {"/payment/cancel", map[string]any{"id": 1, "cancelReason": "a"}, noReservation, false},
		"myReservations":         {"/my-reservations", nil, success, false},
		"sendLoginCode":          {"/account/code", "{}", login, false},
		"loginCustomer":          {"/account/login", "{}", login, false},
		"unlockDoor":             {"/door/v2/unlock", "{}", missingField("지점", "branch"), false},
		"awaitDoor":              {"/door/v2/unlock/subscribe?requestId=a&key=b", nil, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"unlockDoorV1":           {"/door/unlock", nil, versionEnded, false},
		"loginAdmin":             {"/admin/login", "{}", missingField("아이디", "id"), false},
		"adminSlots":             {"/admin/reservations?" + lookUp, nil, success, true},
		"reservationDetail":      {"/admin/reservation/" + paid, nil, success, true},
		"adminCancel":            {"/admin/reservation/" + paid + "?bookingStatus=waitingForDeposit", nil, reply{400, "IllegalArguemntError", "bookingStatus 값이 올바르지 않습니다."}, true},
		"moveReservation":        {"/admin/reservation/" + paid, map[string]any{"room": "2", "startDateTime": inTheWay, "endDateTime": wire(start.Add(time.Hour))}, reply{409, "ResourceAlreadyExistException", "이미 예약 진행 중인 시간대입니다."}, true},
		"adminHold":              {"/admin/reservation", holdBody(1, start, time.Hour), reply{409, "ResourceAlreadyExistException", "해당 시간대에 이미 예약이 존재합니다."}, true},
		"registerWithoutPayment": {"/admin/payment", map[string]any{}, holdExpired, false},
		"issueAccount":           {"/admin/v2/virtual-accounts", map[string]any{"amount": 1, "orderName": "a", "name": "a", "mobileNum": "01012345678", "bankCode": "20"}, holdExpired, false},
		"switchRoom":             {"/admin/machines/gangnam/1", map[string]any{"enabled": true}, success, true},
		"adminUnlockFront":       {adminUnlock + "gangnam/front", nil, success, true},
		"adminUnlockRoom":        {adminUnlock + "gangnam/room/1", nil, success, true},
		"adminAwaitDoor":         {"/admin/door/v2/unlock/subscribe?requestId=" + door, nil, success, true},
		"adminUnlockFrontV1":     {"/admin/door/unlock/gangnam/front", nil, versionEnded, false},
		"adminUnlockRoomV1":      {"/admin/door/unlock/gangnam/room/1", nil, versionEnded, false},
		"airConditionerOptions":  {"/admin/airconditioner/gangnam", nil, success, true},
		"commandAirConditioner":  {"/admin/airconditioner/" + option, nil, deviceAway, true},
		"readSensors":            {"/admin/thermo-hygrometer/gangnam", nil, deviceAway, true},
		"providerCallback":       {"/virtualaccount/webhook", "{}", missingField("주문 번호", "orderId"), false},
		"inquireFranchise":       {"/franchise/inquiries", "{}", missingField("이름", "name"), false},
		"discord":                {"/discord/interactions", "{}", reply{status: 401}, false},

		"openAPI":            {"/openapi.yaml", nil, success, false},
		"whoAmI":             {"/v2/me", nil, success, false},
		"listBranches":       {"/v2/branches", nil, success, false},
		"showRooms":          {"/v2/branches/gangnam/rooms", nil, success, false},
		"showArrival":        {"/v2/branches/gangnam/arrival", nil, success, false},
		"branchesNow":        {"/v2/branches/now", nil, success, false},
		"listBanks":          {"/v2/banks", nil, success, false},
		"showSite":           {"/v2/site", nil, success, false},
		"showLegal":          {"/v2/legal", nil, success, false},
		"showHold":           {"/v2/hold", nil, holdExpired, false},
		"showReceipt":        {"/v2/receipt", nil, holdExpired, false},
		"correctReceipt":     {"/v2/receipt/contact", map[string]any{"mobileNum": "010-1234-5678"}, holdExpired, false},
		"listKeys":           {"/v2/my-keys", nil, success, false},
		"liveEvents":         {"/v2/admin/live?branch=gangnam&date=2026-11-25", nil, reply{400, "IllegalArguemntError", "웹소켓 연결이 필요합니다."}, true},
		"timeline":           {"/v2/admin/branches/gangnam/timeline?date=2026-11-25", nil, success, true},
		"searchReservations": {"/v2/admin/reservations?query=1234", nil, success, false},
		"reservationRecord":  {"/v2/admin/reservations/" + paid, nil, success, true},
		"listHandovers":      {console + "handover", nil, success, true},
		"addHandover":        {console + "handover", map[string]string{"text": "a"}, success, true},
		"setHandover":        {console + "handover/999999", map[string]bool{"done": true}, notThere("메모를"), true},
		"showGuest":          {"/v2/admin/reservations/" + paid + "/guest", nil, success, true},
		"addGuestNote":       {"/v2/admin/reservations/" + paid + "/guest/notes", map[string]string{"text": "a"}, success, true},
		"removeGuestNote":    {"/v2/admin/reservations/" + paid + "/guest/notes/999999", nil, notThere("메모를"), true},
		"blockGuest":         {"/v2/admin/reservations/" + paid + "/guest/block", map[string]any{}, missingField("사유", "reason"), false},
		"unblockGuest":       {"/v2/admin/reservations/" + paid + "/guest/block", nil, success, true},
		"showKey":            {"/v2/keys/none", nil, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},

		"whyKey":               {"/v2/keys/none/why", nil, success, false},
		"whyReservation":       {"/v2/admin/reservations/" + paid + "/why", nil, success, true},
		"listCompanions":       {"/v2/keys/none/companions", nil, unknownKey, false},
		"addCompanion":         {"/v2/keys/none/companions", map[string]string{"label": "a"}, unknownKey, false},
		"revokeCompanion":      {"/v2/keys/none/companions/1", nil, unknownKey, false},
		"rotateKey":            {"/v2/admin/reservations/" + paid + "/key", map[string]any{}, missingField("사유", "reason"), false},
		"correctContact":       {"/v2/admin/reservations/" + paid + "/contact", map[string]string{"reason": "a"}, missingField("휴대폰 번호", "mobileNum"), false},
		"adminRevokeCompanion": {"/v2/admin/reservations/" + paid + "/companions/1", nil, notThere("동행 열쇠를"), true},
		"announcePress":        {"/v2/keys/none/announcements", map[string]string{"branch": "gangnam", "door": "front"}, success, false},
		"giveCode":             {"/v2/keys/none/codes", map[string]any{"door": "front"}, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"showExtension":        {"/v2/keys/none/extension", nil, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"extendStay":           {"/v2/keys/none/extension", map[string]any{"endDateTime": inTheWay}, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"endStay":              {"/v2/keys/none/end", nil, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"exchangeStay":         {"/v2/my-reservations/999999/exchange", map[string]any{"room": 1, "startDateTime": inTheWay, "endDateTime": wire(start.Add(time.Hour))}, noReservation, false},

		"listDoors":             {console + "doors", nil, success, true},
		"showClimate":           {console + "climate", nil, success, true},
		"sensorHistory":         {console + "sensors?location=a&hours=24", nil, success, true},
		"showDevices":           {console + "devices", nil, success, true},
		"exchangeToken":         {"/v2/agent/enroll", map[string]any{"token": "none"}, reply{401, "AuthenticationError", "등록 토큰이 올바르지 않거나 만료되었습니다."}, false},
		"enrollAgent":           {console + "agents", nil, success, true},
		"revokeAgent":           {"/v2/admin/agents/none", nil, notThere("장치를"), false},
		"activateAgent":         {"/v2/admin/agents/none/activate", nil, notThere("장치를"), false},
		"showRollout":           {"/v2/admin/agents/rollout", nil, success, false},
		"startRollout":          {"/v2/admin/agents/rollout", map[string]any{"version": "x"}, reply{400, "IllegalArguemntError", "버전, 배포 단계 또는 관찰 시간이 올바르지 않습니다."}, false},
		"stopRollout":           {"/v2/admin/agents/rollout", nil, reply{404, "ResourceNotFoundException", "진행 중인 배포를 찾을 수 없습니다."}, false},
		"resumeRollout":         {"/v2/admin/agents/rollout/resume", nil, reply{409, "SettingConflictException", "이어서 할 수 있는 중지된 배포가 없습니다."}, false},
		"skipOffline":           {"/v2/admin/agents/rollout/skip-offline", nil, reply{404, "ResourceNotFoundException", "진행 중인 배포를 찾을 수 없습니다."}, false},
		"rotateAgent":           {"/v2/admin/agents/none/rotate", nil, notThere("장치를"), false},
		"listAgentSettings":     {"/v2/admin/agents/none/settings", nil, notThere("장치를"), false},
		"showAgentSettings":     {"/v2/admin/agents/none/settings/1", nil, notThere("장치를"), false},
		"changeAgentSettings":   {"/v2/admin/agents/none/settings", map[string]any{"settings": "x", "base": 0}, notThere("장치를"), false},
		"showAgentDiagnostics":  {"/v2/admin/agents/none/diagnostics", nil, notThere("장치를"), false},
		"openAgentDiagnostics":  {"/v2/admin/agents/none/diagnostics", nil, notThere("장치를"), false},
		"closeAgentDiagnostics": {"/v2/admin/agents/none/diagnostics", nil, notThere("장치를"), false},
		"listMessages":          {console + "messages", nil, success, true},
		"showMessage":           {"/v2/admin/messages/999999", nil, notThere("메시지를"), false},
		"resendMessage":         {"/v2/admin/messages/999999/resend", nil, notThere("메시지를"), false},
		"resendKey":             {"/v2/admin/reservations/999999/key-message", nil, noReservation, false},
		"retryRefund":           {"/v2/admin/reservations/" + paid + "/refund", nil, noReservation, true},
		"approveRefund":         {"/v2/admin/reservations/" + paid + "/refund/approval", nil, noReservation, true},
		"declineRefund":         {"/v2/admin/reservations/" + paid + "/refund/approval", nil, noReservation, true},
		"showRefundLink":        {"/v2/refund-accounts/none", nil, noRefundLink, false},
		"enterRefundAccount":    {"/v2/refund-accounts/none", map[string]string{"refundBankCode": "20", "refundAccount": "1002123456789", "refundHolder": "a"}, noRefundLink, false},
		"quoteRefund":           {"/v2/my-reservations/999999/refund", nil, noReservation, false},
		"refund":                {"/v2/admin/reservations/" + paid + "/refunds", map[string]any{"amount": 2147483647, "settledOutside": map[string]string{"how": "a", "reference": "a"}}, reply{400, "PaymentAmountMismatchException", "환불 금액(amount)이 남은 결제 금액보다 큽니다."}, true},
		"settleCashReceipt":     {"/v2/admin/reservations/" + paid + "/cash-receipt", map[string]any{"cashReceipt": map[string]string{"type": "personal", "number": "01012345678"}}, reply{400, "IllegalArguemntError", "현금영수증을 발급할 입금이 없습니다."}, true},
		"releaseQuarantine":     {"/v2/admin/branches/gangnam/quarantine/1/release", map[string]any{"reason": "확인"}, reply{404, "ResourceNotFoundException", "해당 판매 보류를 찾을 수 없습니다."}, false},
		"checkPayment":          {"/v2/admin/reservations/" + paid + "/check", nil, success, true},
		"refundOrphan":          {"/v2/admin/differences/999999/refund", nil, notThere("차이를"), false},
		"showMoneyDesk":         {"/v2/admin/money-desk?branch=gangnam", nil, success, true},
		"reconcile":             {"/v2/admin/reconciliation", nil, success, false},
		"showOverview":          {"/v2/admin/overview?branch=gangnam", nil, success, true},
		"showDoorLevels":        {"/v2/admin/doors/levels?branch=gangnam", nil, success, true},
		"showOccupancy":         {"/v2/admin/reports/occupancy?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil, success, true},
		"occupancyXLSX":         {"/v2/admin/reports/occupancy.xlsx?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil, success, true},
		"occupancyFile":         {"/v2/admin/reports/occupancy.csv?branch=gangnam&from=2026-11-01&to=2026-11-02&by=day", nil, success, true},
		"showAir":               {"/v2/admin/reports/climate?branch=gangnam&from=2026-11-01&to=2026-11-02", nil, success, true},
		"airCSV":                {"/v2/admin/reports/climate.csv?branch=gangnam&from=2026-11-01&to=2026-11-02", nil, success, true},
		"airXLSX":               {"/v2/admin/reports/climate.xlsx?branch=gangnam", nil, reply{400, "IllegalArguemntError", "시작일(from) 값은 필수입니다."}, true},
		"listCleaning":          {"/v2/admin/cleaning?branch=gangnam", nil, success, true},
		"openForCleaning":       {"/v2/admin/cleaning/gangnam/99/unlock", map[string]any{"door": "room"}, noRoom, true},
		"finishCleaning":        {"/v2/admin/cleaning/gangnam/99/done", nil, noRoom, true},
		"listAlerts":            {"/v2/admin/alerts?branch=gangnam", nil, success, true},
		"acknowledgeAlert":      {"/v2/admin/alerts/" + raised, nil, success, true},
		"showAlertContacts":     {"/v2/admin/alert-contacts", nil, success, false},
		"changeAlertContacts":   {"/v2/admin/alert-contacts", "{}", missingField("알림 받는 사람", "alertContacts"), false},
		"listAudit":             {console + "audit", nil, success, true},
		"showProof":             {"/v2/admin/proof", nil, success, false},
		"listProofs":            {"/v2/admin/proofs", nil, success, false},
		"showSettlement":        {"/v2/admin/settlement?branch=gangnam&month=2026-11", nil, success, true},
		"settlementCSV":         {"/v2/admin/settlement.csv?branch=gangnam&month=2026", nil, reply{400, "IllegalArguemntError", "조회 월(month) 값의 형식이 올바르지 않습니다."}, false},
		"settlementXLSX":        {"/v2/admin/settlement.xlsx?branch=gangnam&month=2026", nil, reply{400, "IllegalArguemntError", "조회 월(month) 값의 형식이 올바르지 않습니다."}, false},
		"showMoney":             {console + "money?yearMonth=2026-11", nil, success, true},
		"noteExport":            {console + "exports", map[string]any{"what": "payments"}, success, true},
		"resolveDifference":     {"/v2/admin/differences/999999/resolution", map[string]any{"resolution": "a"}, notThere("차이를"), false},
		"showSettings":          {console + "settings", nil, success, true},
		"addBranch":             {"/v2/admin/branches", "{}", missingField("지점", "branch"), false},
		"closeBranches":         {"/v2/admin/closures", map[string]any{"branches": []string{"gangnam"}, "rule": map[string]any{"yearly": "02-29"}, "reason": "a", "preview": true}, success, true},
		"changeSettings":        {console + "settings", "{}", reply{400, "IllegalArguemntError", "한글 이름(nameKo) 값은 필수입니다."}, true},
		"listPayments":          {console + "payments?yearMonth=2026-11", nil, success, true},
		"paymentFile":           {console + "payments.csv?yearMonth=2026", nil, reply{400, "IllegalArguemntError", "조회 월(yearMonth) 값의 형식이 올바르지 않습니다."}, true},
		"deleteRoom":            {console + "rooms/99", nil, noRoom, true},
		"setPIN":                {console + "doors/room_99/pin", `{"pin": "4711"}`, noRoom, true},
		"changeRoom":            {console + "rooms/x", "{}", reply{400, "IllegalArguemntError", "룸 번호(room) 값은 1에서 9999 사이여야 합니다."}, true},
		"describeRoom":          {console + "rooms/99/profile", "{}", noRoom, true},
		"addPhoto":              {console + "rooms/1/photos", "{}", missingField("그림", "data"), true},
		"removePhoto":           {console + "rooms/1/photos/999", nil, notThere("사진을"), true},
		"addStep":               {console + "arrival", "{}", missingField("글", "text"), true},
		"changeStep":            {console + "arrival/999", "{}", missingField("글", "text"), true},
		"removeStep":            {console + "arrival/999", nil, notThere("단계를"), true},
		"showPrices":            {console + "rooms/1/prices", nil, success, true},
		"changePrices":          {console + "rooms/1/prices", "{}", missingField("요금 규칙", "rules"), true},
		"previewPrices":         {console + "rooms/1/prices/preview", "{}", missingField("날짜", "date"), true},
		"addListing":            {console + "channels", "{}", missingField("채널", "partner"), true},
		"enterPartnerBooking":   {console + "partner-bookings", "{}", missingField("채널", "partner"), true},
		"switchListing":         {console + "channels/999999", map[string]any{"enabled": true}, notThere("채널을"), true},
		"exportListing":         {console + "channels/999999/export", nil, notThere("채널을"), true},
		"showAccount":           {"/v2/admin/account", nil, success, false},
		"showClimatePolicy":     {console + "climate-policy", nil, success, true},
		"changeClimatePolicy":   {console + "climate-policy", "{}", missingField("룸", "rooms"), true},
		"chooseClimate":         {"/v2/keys/none/climate", map[string]any{"option": "a"}, reply{400, "ResourceNotExistException", "유효하지 않은 도어락 키입니다."}, false},
		"listEvents":            {"/v2/events?limit=1", nil, success, false},
		"showCompany":           {"/v2/admin/company", nil, success, false},
		"changeCompany":         {"/v2/admin/company", "{}", missingField("회사", "company"), false},
		"putLogo":               {"/v2/admin/company/logo", "{}", missingField("그림", "data"), false},
		"removeLogo":            {"/v2/admin/company/logo", nil, success, false},
		"listTexts":             {"/v2/admin/company/texts", nil, success, false},
		"addText":               {"/v2/admin/company/texts", "{}", missingField("버전", "version"), false},
		"listEntities":          {"/v2/admin/entities", nil, success, false},
		"putEntity":             {"/v2/admin/entities/seoul", "{}", missingField("회사", "company"), false},
		"switchEntity":          {"/v2/admin/entities/nowhere", map[string]any{"enabled": true}, notThere("사업자를"), false},
		"assignEntity":          {console + "entity", "{}", missingField("사업자", "entity"), false},
		"listWebhooks":          {"/v2/admin/webhooks", nil, success, false},
		"addWebhook":            {"/v2/admin/webhooks", "{}", missingField("주소", "url"), false},
		"switchWebhook":         {"/v2/admin/webhooks/999999", map[string]any{"enabled": true}, notThere("웹훅을"), false},
		"removeWebhook":         {"/v2/admin/webhooks/999999", nil, notThere("웹훅을"), false},
		"listDeliveries":        {"/v2/admin/webhooks/999999/deliveries", nil, notThere("웹훅을"), false},
		"replayWebhook":         {"/v2/admin/webhooks/999999/replay", map[string]any{"after": "0"}, notThere("웹훅을"), false},
		"listTokens":            {"/v2/admin/tokens", nil, success, false},
		"addToken":              {"/v2/admin/tokens", "{}", missingField("이름", "name"), false},
		"showToken":             {"/v2/admin/tokens/999999", nil, notThere("토큰을"), false},
		"removeToken":           {"/v2/admin/tokens/999999", nil, notThere("토큰을"), false},
		"changePassword":        {"/v2/admin/account/password", "{}", missingField("비밀번호", "password"), false},
		"beginTOTP":             {"/v2/admin/account/totp", "{}", missingField("비밀번호", "password"), false},
		"newRecoveryCodes":      {"/v2/admin/account/recovery-codes", "{}", missingField("비밀번호", "password"), false},
		"beginPasskey":          {"/v2/admin/account/passkeys/options", "{}", missingField("비밀번호", "password"), false},
		"addPasskey":            {"/v2/admin/account/passkeys", "{}", missingField("이름", "name"), false},
		"removePasskey":         {"/v2/admin/account/passkeys/999999", "{}", missingField("비밀번호", "password"), false},
		"beginPasskeyLogin":     {"/v2/admin/passkeys/options", nil, success, false},
		"loginWithPasskey":      {"/v2/admin/passkeys/login", "{}", missingField("패스키", "credential"), false},
		"showConfirmation":      {"/v2/admin/account/confirmation", nil, success, false},
		"confirmIdentity":       {"/v2/admin/account/confirmation", "{}", missingField("비밀번호", "password"), false},
		"confirmTOTP":           {"/v2/admin/account/totp", "{}", missingField("인증번호", "code"), false},
		"endTOTP":               {"/v2/admin/account/totp", "{}", missingField("인증번호", "code"), false},
		"endOwnSession":         {"/v2/admin/account/sessions/none", nil, notThere("세션을"), false},
		"listAdministrators":    {"/v2/admin/administrators", nil, success, false},
		"addAdministrator":      {"/v2/admin/administrators", "{}", missingField("아이디", "id"), false},
		"changeAdministrator":   {"/v2/admin/administrators/kim", "{}", missingField("역할", "role"), false},
		"switchAdministrator":   {"/v2/admin/administrators/kim", "{}", missingField("정지 여부", "disabled"), false},
		"resetPassword":         {"/v2/admin/administrators/kim/password", "{}", missingField("비밀번호", "password"), false},
		"removeTOTP":            {"/v2/admin/administrators/kim/totp", nil, notThere("관리자를"), false},
		"endSessions":           {"/v2/admin/administrators/kim/sessions", nil, notThere("관리자를"), false},
		"exportPerson":          {"/v2/admin/personal-data/export", "{}", missingField("연락처", "contact"), false},
		"erasePerson":           {"/v2/admin/personal-data/erase", "{}", missingField("연락처", "contact"), false},

		"logout":      {"/account/logout", nil, success, false},
		"logoutAdmin": {"/admin/logout", nil, success, false},
	}
}

// expected returns a cell of the matrix: the reply that a role receives for an operation.
func expected(o contract.Operation, role string, p probe) reply {
	access, administrator, limited := o.Access(), role != "none" && role != "customer", account.Role(role).Limited()
	switch {
	case access == "public":
	case role == "none":
		return noSuchSession
	case access == "session":
	case access == "customer":
		if administrator {
			return notAuthorized
		}
		return p.want
	case !administrator,
		limited && !slices.Contains(o.Roles(), role),
		access == "change" && role == "viewer",
		access == "hq" && role != "hq":
		return notAuthorized
	}
	if p.scoped && role == "other" {
		return outOfScope
	}
	return p.want
}

// TestAuthorization calls every route with every role. The expected replies follow from x-access in openapi.yaml, the layers
// and the scope.
func TestAuthorization(t *testing.T) {
	t.Parallel()
	c := newCast(t, servicetest.Start(t))
	table := probes(t, c)
	operations := contract.Operations()
	// Operations that end sessions run last.
	ending := func(o contract.Operation) int { return slices.Index([]string{"logoutAdmin", "logout"}, o.OperationID) }
	slices.SortStableFunc(operations, func(a, b contract.Operation) int { return ending(a) - ending(b) })
	cells := 0
	for _, o := range operations {
		p, ok := table[o.OperationID]
		if !ok {
			t.Errorf("%s has no row in the matrix", o.OperationID)
			continue
		}
		for _, role := range c.roles() {
			cells++
			check(t, fmt.Sprintf("%s by %s", o.OperationID, role.name), role.client, o.Method, p, expected(o, role.name, p))
		}
	}
	t.Logf("%d cells", cells)
}

func check(t *testing.T, name string, client *servicetest.Client, method string, p probe, want reply) {
	t.Helper()
	answer := client.Send(method, p.path, p.body, nil)
	got := reply{status: answer.HTTP}
	if want.errorType != "" {
		answer = answer.Envelope(t)
		got.errorType, got.message = answer.ErrorType, answer.Message
	}
	if got != want {
		t.Errorf("%s: %+v, want %+v: %s", name, got, want, answer.Raw)
	}
}
