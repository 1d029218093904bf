package httpapi

import (
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/yeolda/yeolda/cloud/internal/access"
	"github.com/yeolda/yeolda/cloud/internal/account"
	"github.com/yeolda/yeolda/cloud/internal/alert"
	"github.com/yeolda/yeolda/cloud/internal/backoffice"
	"github.com/yeolda/yeolda/cloud/internal/booking"
	"github.com/yeolda/yeolda/cloud/internal/climate"
	"github.com/yeolda/yeolda/cloud/internal/company"
	"github.com/yeolda/yeolda/cloud/internal/device"
	"github.com/yeolda/yeolda/cloud/internal/enroll"
	"github.com/yeolda/yeolda/cloud/internal/events"
	"github.com/yeolda/yeolda/cloud/internal/gallery"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/console"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/session"
	"github.com/yeolda/yeolda/cloud/internal/httpapi/wire"
	"github.com/yeolda/yeolda/cloud/internal/idempotency"
	"github.com/yeolda/yeolda/cloud/internal/limit"
	"github.com/yeolda/yeolda/cloud/internal/reserve"
	"github.com/yeolda/yeolda/cloud/internal/rollout"
)

// The interface's error types, with its own spelling.
const (
	typeAuthentication = "AuthenticationError"
	typeAuthorization  = "AuthorizationError"
	typeScope          = "AuthorizationException"
	typeIllegal        = "IllegalArguemntError"
	typeNotFound       = "ResourceNotFoundException"
	typeNotExist       = "ResourceNotExistException"
	typeAlreadyExist   = "ResourceAlreadyExistException"
	typeTimeOut        = "ResourceTimeOutException"
	typeWindow         = "ResourceValidTimePassedException"
	typeConflict       = "SettingConflictException"
	typeHoldChanged    = "ResourceConflictException"
	typeAsync          = "AsyncRequestTimeoutException"
	typeAmount         = "PaymentAmountMismatchException"
	typePaymentFailed  = "PaymentFailedException"
	typePaymentPending = "PaymentPendingException"
	typeDevice         = "DeviceUnavailableException"
	typeEnded          = "ApiVersionEndedException"
	typeMethod         = "MethodNotAllowedError"
	typeTooLarge       = "PayloadTooLargeError"
	typeTooMany        = "TooManyRequestsError"
	typeSecondFactor   = "SecondFactorRequired"
	typeConfirmation   = "ConfirmationRequired"
	typeUnavailable    = "ServiceUnavailableError"
	typeInternal       = "InternalServerError"
)

// Errors that arise in this package.
var (
	errNoSession         = errors.New("httpapi: no session")
	errNotAdministrator  = errors.New("httpapi: not an administrator")
	errNeedsSecondFactor = errors.New("httpapi: a second factor must be set up first")
	errNotCustomer       = errors.New("httpapi: not a customer")
	errNoPath            = errors.New("httpapi: no such path")
	errMethod            = errors.New("httpapi: method not allowed")
	errEnded             = errors.New("httpapi: this version has ended")
	errCrossOrigin       = errors.New("httpapi: a browser sent this for another site")
	errOverloaded        = errors.New("httpapi: the database is overloaded")
)

// row is one row of the error table.
type row struct {
	err       error
	status    int
	errorType string
	message   string
}

// table maps errors to answers (docs/specification.md, Errors).
var table = []row{
	{errNoSession, 401, typeAuthentication, "인증되지 않은 사용자입니다."},
	{enroll.ErrToken, 401, typeAuthentication, "등록 토큰이 올바르지 않거나 만료되었습니다."},
	{account.ErrWrongCode, 401, typeAuthentication, "인증번호가 올바르지 않거나 만료되었습니다."},
	{account.ErrWrongPassword, 401, typeAuthentication, "아이디 또는 비밀번호가 올바르지 않습니다."},
	{account.ErrSecondFactorRequired, 401, typeSecondFactor, "2단계 인증 번호를 입력해 주세요."},
	{account.ErrWrongSecondFactor, 401, typeAuthentication, "2단계 인증 번호가 올바르지 않습니다."},
	{account.ErrPasskey, 401, typeAuthentication, "패스키를 확인할 수 없습니다."},
	{account.ErrNoPasskeys, 400, typeIllegal, "이 주소에서는 패스키를 사용할 수 없습니다."},
	{account.ErrNoPasskey, 404, typeNotFound, "해당 패스키를 찾을 수 없습니다."},
	{account.ErrNoSecondStep, 400, typeIllegal, "2단계 인증 설정을 먼저 시작해 주세요."},
	{account.ErrCommonPassword, 400, typeIllegal, "너무 흔하거나 아이디가 들어간 비밀번호는 사용할 수 없습니다."},
	{errStepUp, 403, typeConfirmation, "본인 확인이 필요합니다. 비밀번호나 2단계 인증 번호를 다시 입력해 주세요."},
	{errNeedsSecondFactor, 403, typeSecondFactor, "2단계 인증을 먼저 설정해 주세요."},
	{account.ErrWeakPassword, 400, typeIllegal, "비밀번호는 12자에서 256자 사이여야 합니다."},
	{account.ErrLoginID, 400, typeIllegal, "아이디(id)는 영문 소문자, 숫자, 점, 하이픈, 밑줄로 최대 40자입니다."},
	{account.ErrRole, 400, typeIllegal, "역할(role) 값이 올바르지 않습니다."},
	{account.ErrNeedsBranch, 400, typeIllegal, "본사가 아니면 담당 지점(branches)이 하나 이상 필요합니다."},
	{account.ErrLastHeadquarters, 400, typeIllegal, "로그인할 수 있는 마지막 본사 계정은 바꿀 수 없습니다."},
	{console.ErrOwnRights, 400, typeIllegal, "자신의 권한은 스스로 바꿀 수 없습니다."},
	{backoffice.ErrLoginCode, 400, typeIllegal, "로그인 인증번호는 다시 보낼 수 없습니다."},
	{backoffice.ErrOutdated, 400, typeIllegal, "그 뒤에 바뀐 내용이 있어 이 메시지는 다시 보낼 수 없습니다. 최근 메시지를 보내 주세요."},
	{backoffice.ErrNoSession, 404, typeNotFound, "해당 세션을 찾을 수 없습니다."},
	{booking.ErrAdministratorExists, 409, typeAlreadyExist, "이미 사용 중인 아이디입니다."},
	{errNotAdministrator, 403, typeAuthorization, "인가되지 않은 사용자입니다."},
	{account.ErrRoleForbidden, 403, typeAuthorization, "인가되지 않은 사용자입니다."},
	{session.ErrToken, 401, typeAuthentication, "토큰이 올바르지 않거나 만료되었습니다."},
	{account.ErrScopeForbidden, 403, typeAuthorization, "토큰에 이 작업의 권한(scope)이 없습니다."},
	{account.ErrNoToken, 404, typeNotFound, "해당 토큰을 찾을 수 없습니다."},
	{account.ErrScope, 400, typeIllegal, "권한(scopes)은 read, book, money, doors, climate 중 하나 이상이어야 합니다."},
	{account.ErrTokenExpiry, 400, typeIllegal, "만료 시각(expiresAt)은 현재보다 뒤여야 합니다."},
	{company.ErrContrast, 400, typeIllegal, "색(color)은 #1b64da 형식이어야 하고, 흰 글자와 흰 배경에서 읽을 수 있게 충분히 어두워야 합니다(명암비 4.5 이상)."},
	{company.ErrLogo, 400, typeIllegal, "로고(data)는 32KB 이하, 한 변 16~1024픽셀의 PNG 또는 JPEG 그림이어야 합니다."},
	{gallery.ErrPhoto, 400, typeIllegal, "사진(data)은 6MB 이하, 2,500만 화소 이하, 짧은 변 320픽셀 이상이고 긴 변이 짧은 변의 3배를 넘지 않는 JPEG, PNG 또는 WebP 그림이어야 합니다."},
	{backoffice.ErrNothingToPhotograph, 409, typeConflict, "최근에 이용이 끝난 예약이 없어 사진을 남길 수 없습니다."},
	{gallery.ErrFull, 409, typeConflict, "룸마다 사진은 6장까지 올릴 수 있습니다. 다른 사진을 먼저 삭제해 주세요."},
	{gallery.ErrNoPhoto, 404, typeNotFound, "해당 사진을 찾을 수 없습니다."},
	{gallery.ErrStepsFull, 409, typeConflict, "들어오는 길은 8단계까지 안내할 수 있습니다. 다른 단계를 먼저 삭제해 주세요."},
	{gallery.ErrNoStep, 404, typeNotFound, "해당 단계를 찾을 수 없습니다."},
	{company.ErrNoText, 404, typeNotFound, "해당 약관 버전을 찾을 수 없습니다."},
	{company.ErrTextExists, 409, typeAlreadyExist, "이미 있는 약관 버전입니다. 버전은 바꿀 수 없으니 새 버전을 만들어 주세요."},
	{company.ErrNoEntity, 404, typeNotFound, "해당 사업자를 찾을 수 없습니다."},
	{company.ErrKeyRejected, 400, typeIllegal, "결제사가 시크릿 키를 거절했습니다. 키를 다시 확인해 주세요."},
	{company.ErrRetired, 409, typeConflict, "사용을 마친 사업자입니다."},
	{company.ErrEntityUsed, 409, typeConflict, "이 사업자로 판매하는 지점이 있습니다. 먼저 지점의 판매 사업자를 바꿔 주세요."},
	{company.ErrEntityOpen, 409, typeConflict, "이 사업자의 결제나 환불, 확인할 차이가 남아 있습니다. 먼저 끝내 주세요."},
	{booking.ErrSellerChanged, 409, typeHoldChanged, "예약 정보가 변경되었습니다. 다시 확인해 주세요."},
	{company.ErrOtherKeys, 409, typeConflict, "이 사업자의 결제를 찾을 수 없는 키입니다. 다른 계약의 키는 새 사업자로 추가해 주세요."},
	{company.ErrKeyInUse, 409, typeAlreadyExist, "이미 다른 사업자가 사용하는 결제 키입니다."},
	{events.ErrNoWebhook, 404, typeNotFound, "해당 웹훅을 찾을 수 없습니다."},
	{events.ErrAddress, 400, typeIllegal, "웹훅 주소(url)는 공개된 https 주소여야 합니다."},
	{events.ErrForeign, 403, typeAuthorization, "토큰에 이 작업의 권한(scope)이 없습니다."},
	{events.ErrTooMany, 400, typeIllegal, "웹훅은 50개까지 추가할 수 있습니다."},
	{events.ErrType, 400, typeIllegal, "이벤트 종류(types) 값이 올바르지 않습니다."},
	{events.ErrGone, 410, typeWindow, "요청한 위치 다음의 이벤트가 보관되어 있지 않습니다. 처음부터 다시 조회해 주세요."},
	{errKeyForm, 400, typeIllegal, "Idempotency-Key 헤더는 공백 없는 1자에서 255자의 ASCII 문자여야 합니다."},
	{idempotency.ErrReused, 409, typeConflict, "같은 Idempotency-Key로 다른 요청을 이미 보냈습니다."},
	{idempotency.ErrPending, 409, typeHoldChanged, "같은 Idempotency-Key의 요청을 처리하고 있거나 그 결과를 알 수 없습니다."},
	{errNotCustomer, 403, typeAuthorization, "인가되지 않은 사용자입니다."},
	{errCrossOrigin, 403, typeAuthorization, "다른 사이트에서 보낸 요청은 처리할 수 없습니다."},
	{account.ErrBranchForbidden, 403, typeScope, "해당 지점에 접근 권한이 없습니다."},
	{reserve.ErrNotPayer, 403, typeScope, "해당 예약에 대한 권한이 없습니다."},
	{reserve.ErrWrongSecret, 403, typeScope, "웹훅 인증에 실패했습니다."},

	{errNoPath, 404, typeNotFound, "요청하신 경로를 찾을 수 없습니다."},
	{booking.ErrNoBranch, 404, typeNotFound, "해당 지점을 찾을 수 없습니다."},
	{reserve.ErrNoRoom, 404, typeNotFound, "해당 룸을 찾을 수 없습니다."},
	{reserve.ErrNotFound, 404, typeNotFound, "해당 예약을 찾을 수 없습니다."},
	{backoffice.ErrNoGuest, 404, typeNotFound, "해당 예약에 휴대폰 번호가 없습니다."},
	{backoffice.ErrNoNote, 404, typeNotFound, "해당 메모를 찾을 수 없습니다."},
	{reserve.ErrBlocked, 403, typeAuthorization, "이 휴대폰 번호로는 예약할 수 없습니다. 지점에 문의해 주세요."},
	{booking.ErrNoMessage, 404, typeNotFound, "해당 메시지를 찾을 수 없습니다."},
	{booking.ErrNoReservation, 404, typeNotFound, "해당 예약을 찾을 수 없습니다."},
	{reserve.ErrNoRefundLink, 404, typeNotFound, "해당 환불 링크를 찾을 수 없습니다."},
	{reserve.ErrUnknownOrder, 404, typeNotFound, "해당 주문을 찾을 수 없습니다."},
	{account.ErrNoHistory, 404, typeNotFound, "예약 내역이 없습니다."},
	{backoffice.ErrChanged, 409, typeConflict, "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."},
	{backoffice.ErrRoomExists, 409, typeConflict, "이미 있는 룸 번호입니다."},
	{backoffice.ErrRoomUsed, 409, typeConflict, "사용 중이거나 예약된 적이 있는 룸은 삭제할 수 없습니다."},
	{alert.ErrNoAlert, 404, typeNotFound, "해당 알림을 찾을 수 없습니다."},
	{backoffice.ErrNoListing, 404, typeNotFound, "해당 채널을 찾을 수 없습니다."},
	{backoffice.ErrBranchCode, 400, typeIllegal, "지점 코드(branch)는 영문 소문자, 숫자, 하이픈으로 최대 40자이며 영문 소문자나 숫자로 시작해야 합니다."},
	{backoffice.ErrBranchExists, 409, typeAlreadyExist, "이미 있는 지점 코드입니다."},
	{backoffice.ErrListingExists, 409, typeAlreadyExist, "이미 등록된 채널입니다."},
	{backoffice.ErrNoDiscrepancy, 404, typeNotFound, "해당 차이를 찾을 수 없습니다."},
	{reserve.ErrNothingToSend, 400, typeIllegal, "보낼 열쇠나 받는 사람이 없습니다."},
	{rollout.ErrInvalid, 400, typeIllegal, "버전, 배포 단계 또는 관찰 시간이 올바르지 않습니다."},
	{rollout.ErrUnchanged, 400, typeIllegal, "바꿀 글(change.old)이 있는 장치 설정이 없습니다."},
	{rollout.ErrNoPackage, 404, typeNotFound, "해당 버전의 패키지를 찾을 수 없습니다."},
	{rollout.ErrOpen, 409, typeAlreadyExist, "이미 진행 중인 배포가 있습니다."},
	{rollout.ErrNotStopped, 409, typeConflict, "이어서 할 수 있는 중지된 배포가 없습니다."},
	{rollout.ErrNone, 404, typeNotFound, "진행 중인 배포를 찾을 수 없습니다."},
	{device.ErrSettings, 400, typeIllegal, "설정(settings)은 제어 문자가 없는 24KB 이하의 텍스트여야 합니다."},
	{device.ErrSettingsChanged, 409, typeConflict, "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."},
	{device.ErrNoSettings, 404, typeNotFound, "해당 설정 버전을 찾을 수 없습니다."},
	{device.ErrNoDiagnostics, 409, typeConflict, "이 장치의 프로그램은 진단을 지원하지 않습니다. 먼저 업데이트해 주세요."},
	{backoffice.ErrNoAgent, 404, typeNotFound, "해당 장치를 찾을 수 없습니다."},
	{booking.ErrNoAdministrator, 404, typeNotFound, "해당 관리자를 찾을 수 없습니다."},
	{errMethod, 405, typeMethod, "허용되지 않은 요청 방식입니다."},

	{reserve.ErrTaken, 409, typeAlreadyExist, "해당 시간대에 이미 예약이 존재합니다."},
	{reserve.ErrPartnerConflict, 409, typeAlreadyExist, "해당 시간대에 이미 예약이 존재합니다."},
	{reserve.ErrHeld, 409, typeAlreadyExist, "이미 예약 진행 중인 시간대입니다."},
	{reserve.ErrRoomDisabled, 409, typeConflict, "현재 예약할 수 없는 룸입니다."},
	{errEnded, 410, typeEnded, "종료된 API입니다. V2 API를 사용해 주세요."},
	{wire.ErrBodyTooLarge, 413, typeTooLarge, "요청 본문이 너무 큽니다."},
	{access.ErrOtherRoom, 409, typeHoldChanged, "예약 정보가 변경되었습니다. 다시 확인해 주세요."},
	{access.ErrNoResult, 503, typeAsync, "요청 시간이 초과되었습니다."},

	{reserve.ErrHoldChanged, 409, typeHoldChanged, "예약 정보가 변경되었습니다. 다시 확인해 주세요."},
	{reserve.ErrHoldExpired, 401, typeTimeOut, "예약 세션이 만료되었습니다."},
	{reserve.ErrAmountMismatch, 400, typeAmount, "결제 금액이 예약 금액과 일치하지 않습니다."},
	{reserve.ErrBooksUnavailable, unavailable.status, unavailable.errorType, unavailable.message},
	{reserve.ErrPaymentPending, 503, typePaymentPending, "결제 결과를 확인하고 있습니다."},
	{reserve.ErrExceedsBalance, 400, typeAmount, "환불 금액(amount)이 남은 결제 금액보다 큽니다."},
	{reserve.ErrRefundChanged, 409, typeHoldChanged, "환불 금액이 변경되었습니다. 다시 확인해 주세요."},
	{reserve.ErrRefundOpen, 409, typeConflict, "진행 중인 환불이 있습니다. 먼저 완료한 뒤 다시 시도해 주세요."},
	{reserve.ErrKeyReused, 409, typeHoldChanged, "같은 Idempotency-Key로 다른 내용의 요청이 있었습니다."},
	{reserve.ErrNoCash, 400, typeIllegal, "현금영수증을 발급할 입금이 없습니다."},
	{reserve.ErrReceiptStands, 409, typeConflict, "이미 발급되었거나 처리 중인 현금영수증입니다."},
	{reserve.ErrNothingToRefund, 400, typeIllegal, "환불할 결제 금액이 없습니다."},
	{reserve.ErrSameAdministrator, 403, typeScope, "요청한 관리자가 아닌 다른 관리자의 승인이 필요합니다."},
	{reserve.ErrQuarantine, 400, typeIllegal, "취소되거나 변경된 예약의 비밀번호로 아직 문이 열릴 수 있어 판매를 보류한 시간입니다. 본사만 판매 보류를 해제할 수 있습니다."},
	{reserve.ErrStatusMismatch, 400, typeIllegal, "bookingStatus 값이 올바르지 않습니다."},
	{reserve.ErrAccountRequired, 400, typeIllegal, "가상계좌 환불에는 환불 은행(refundReceiveAccountBank), 계좌번호(refundReceiveAccountNumber), 예금주(refundReceiveAccountHolderName)가 필요합니다."},
	{reserve.ErrUnknownBank, 400, typeIllegal, "은행 코드 값이 올바르지 않습니다."},
	{reserve.ErrNotForSale, 400, typeIllegal, "해당 룸에서 예약할 수 없는 이용 시간입니다. 종료 시각(endDateTime)을 확인해 주세요."},
	{reserve.ErrNoKey, 400, typeIllegal, "열쇠가 없는 예약입니다. 결제가 끝난 예약만 열쇠를 바꿀 수 있습니다."},
	{reserve.ErrNotCorrectable, 400, typeIllegal, "연락처를 고칠 수 없는 예약입니다."},
	{reserve.ErrUnknownKey, 400, typeNotExist, "유효하지 않은 도어락 키입니다."},
	{reserve.ErrNotOwner, 403, typeScope, "예약자의 열쇠로만 동행 열쇠를 관리할 수 있습니다."},
	{reserve.ErrNoCompanion, 404, typeNotFound, "해당 동행 열쇠를 찾을 수 없습니다."},
	{reserve.ErrTooManyCompanions, 409, typeHoldChanged, "동행 열쇠는 최대 8개까지 만들 수 있습니다."},
	{reserve.ErrCompanionsUsedUp, 409, typeHoldChanged, "동행 열쇠는 취소한 것을 포함해 예약마다 50개까지 만들 수 있습니다."},
	{reserve.ErrStayOver, 410, typeWindow, "도어락 해제 가능 시간이 아닙니다."},
	{reserve.ErrNotMovable, 400, typeIllegal, "변경할 수 없는 예약입니다."},
	{reserve.ErrNotExtendable, 409, typeConflict, "연장할 수 없는 예약입니다."},
	{reserve.ErrExtensionWaits, 409, typeConflict, "결제를 기다리는 연장이 이미 있습니다. 그 결제가 끝난 뒤에 다시 연장해 주세요."},
	{reserve.ErrOwnerOnly, 403, typeScope, "예약자의 열쇠로만 이용 시간을 바꿀 수 있습니다."},
	{reserve.ErrStayEnded, 410, typeWindow, "이용 시간이 끝난 예약입니다."},
	{reserve.ErrNotBegun, 400, typeIllegal, "아직 시작되지 않은 예약입니다. 예약 취소를 이용해 주세요."},

	{booking.ErrTooLong, 400, typeIllegal, "최대 예약 시간은 5시간입니다."},
	{booking.ErrOffGrid, 400, typeIllegal, "시작 시각(startDateTime)과 종료 시각(endDateTime)은 10분 단위여야 합니다."},
	{booking.ErrNoLocalTime, 400, typeIllegal, "시작 시각(startDateTime)이나 종료 시각(endDateTime)이 지점의 시간대에 없는 시각입니다."},
	{booking.ErrEndBeforeStart, 400, typeIllegal, "종료 시각(endDateTime)은 시작 시각(startDateTime)보다 늦어야 합니다."},
	{booking.ErrPast, 400, typeIllegal, "시작 시각(startDateTime)이 이미 지났습니다."},
	{booking.ErrBeyondHorizon, 400, typeIllegal, "시작 시각(startDateTime)이 예약 가능 기간을 벗어났습니다."},
	{booking.ErrClosed, 400, typeIllegal, "휴무일에는 예약할 수 없습니다. 시작 시각(startDateTime)을 확인해 주세요."},
	{booking.ErrBreak, 400, typeIllegal, "휴게 시간에는 예약할 수 없습니다. 시작 시각(startDateTime)과 종료 시각(endDateTime)을 확인해 주세요."},
	{booking.ErrAfterHours, 400, typeIllegal, "운영 시간 외에는 예약할 수 없습니다. 시작 시각(startDateTime)과 종료 시각(endDateTime)을 확인해 주세요."},
	{booking.ErrTooLateToCancel, 400, typeIllegal, "예약 시작 30분 전까지만 취소할 수 있습니다."},

	{access.ErrInvalidKey, 400, typeNotExist, "유효하지 않은 도어락 키입니다."},
	{access.ErrNoKeypad, 409, typeHoldChanged, "이 문에는 일회용 코드를 입력할 수 있는 키패드가 없습니다."},
	{access.ErrNoCode, 503, typeDevice, "지금은 일회용 코드를 만들 수 없습니다. 잠시 후 다시 시도해 주세요."},
	{backoffice.ErrNoQuarantine, 404, typeNotFound, "해당 판매 보류를 찾을 수 없습니다."},
	{access.ErrOutsideWindow, 410, typeWindow, "도어락 해제 가능 시간이 아닙니다."},
	{access.ErrUnknownRequest, 404, typeNotFound, "해당 문 열기 요청을 찾을 수 없습니다."}, // for administrators; a guest receives ErrInvalidKey
	{access.ErrOccupied, 409, typeConflict, "이용 중이거나 곧 이용할 룸에는 들어갈 수 없습니다."},
	{access.ErrUnknownRoom, 404, typeNotFound, "해당 룸을 찾을 수 없습니다."},
	{climate.ErrUnknownOption, 404, typeNotFound, "해당 에어컨 옵션을 찾을 수 없습니다."},
	{climate.ErrNoRoom, 404, typeNotFound, "해당 룸을 찾을 수 없습니다."},
	{climate.ErrDuplicateRoom, 400, typeIllegal, "한 룸(room)에는 정책을 하나만 정할 수 있습니다."},
	{climate.ErrOtherUnit, 400, typeIllegal, "에어컨(unit)에 없는 옵션입니다."},
	{climate.ErrStaffDecided, 409, typeConflict, "직원이 에어컨을 조작하여 온도를 바꿀 수 없습니다."},
	{climate.ErrDeviceUnavailable, 503, typeDevice, "지점 장치가 응답하지 않습니다."},
}

// answer is the HTTP form of an error.
type answer struct {
	status     int
	errorType  string
	errorCode  *string
	message    string
	data       any
	retryAfter time.Duration
}

func (a answer) retryAfterSeconds() string {
	return strconv.Itoa(int(math.Ceil(a.retryAfter.Seconds())))
}

// answerTo returns the answer to an error; false for an error that is not in the table.
func answerTo(err error) (answer, bool) {
	var (
		field    *wire.FieldError
		invalid  *booking.InvalidError
		schedule *backoffice.ScheduleConflict
		turnover *backoffice.TurnoverConflict
		unproven *reserve.LockUnproven
		refused  *reserve.PaymentRefused
		busy     *reserve.RoomBusy
		exceeded *limit.ExceededError
		stale    *reserve.Stale
	)
	switch {
	case errors.Is(err, errOverloaded):
		return unavailable, true
	case errors.As(err, &field):
		return answer{status: http.StatusBadRequest, errorType: typeIllegal, message: field.Error()}, true
	case errors.As(err, &invalid):
		return answer{status: http.StatusBadRequest, errorType: typeIllegal, message: wire.Invalid(invalid).Error()}, true
	case errors.As(err, &refused):
		return answer{status: http.StatusBadRequest, errorType: typePaymentFailed, errorCode: &refused.Code, message: refused.Message}, true
	case errors.As(err, &busy):
		return answer{status: http.StatusConflict, errorType: typeConflict,
			message: "해당 룸에 예약이 존재하여 비활성화할 수 없습니다.", data: wireConflicts(busy.Zone, busy.Conflicts)}, true
	case errors.As(err, &schedule):
		return answer{status: http.StatusConflict, errorType: typeConflict,
			message: "변경할 운영 시간 밖에 예약이 있습니다.", data: wireConflicts(schedule.Zone, schedule.Conflicts)}, true
	case errors.As(err, &turnover):
		return answer{status: http.StatusConflict, errorType: typeConflict,
			message: "예약 사이의 간격이 새 정리 시간보다 짧습니다.", data: wireConflicts(turnover.Zone, turnover.Conflicts)}, true
	case errors.As(err, &unproven):
		return answer{status: http.StatusConflict, errorType: typeConflict,
			message: "문이 확인되지 않은 룸은 활성화할 수 없습니다. 지점 장치에 문이 연결되어 있고 비밀번호(PIN)가 등록되어 있어야 합니다.",
			data:    map[string]bool{"noDoor": unproven.NoDoor, "noPin": unproven.NoPIN}}, true
	case errors.As(err, &stale):
		return answer{status: http.StatusConflict, errorType: typeConflict, message: "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요."}, true
	case errors.As(err, &exceeded):
		return answer{status: http.StatusTooManyRequests, errorType: typeTooMany,
			message: "요청이 너무 많습니다. 잠시 후 다시 시도해 주세요.", retryAfter: exceeded.RetryAfter}, true
	}
	for _, row := range table {
		if errors.Is(err, row.err) {
			return answer{status: row.status, errorType: row.errorType, message: row.message}, true
		}
	}
	return answer{status: http.StatusInternalServerError, errorType: typeInternal, message: "일시적인 오류가 발생했습니다."}, false
}

// unavailable answers a request that failed because the database is away, or was rejected because it is overloaded. A proxy may repeat it.
var unavailable = answer{status: http.StatusServiceUnavailable, errorType: typeUnavailable,
	message: "일시적으로 서비스를 이용할 수 없습니다. 잠시 후 다시 시도해 주세요.", retryAfter: 2 * time.Second}

func stack() string { return string(debug.Stack()) }
