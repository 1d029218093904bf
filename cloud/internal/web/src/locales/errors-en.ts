// The service's messages to administrators in English. The interface defines them in Korean (cloud/internal/httpapi/errors.go).

export const errors: Record<string, string> = {
  "인증되지 않은 사용자입니다.": "Your session has ended.",
  "인증번호가 올바르지 않거나 만료되었습니다.": "The code is wrong or has expired.",
  "아이디 또는 비밀번호가 올바르지 않습니다.": "The ID or the password is wrong.",
  "2단계 인증 번호를 입력해 주세요.": "Enter the code of the two-step verification.",
  "2단계 인증 번호가 올바르지 않습니다.": "The code of the two-step verification is wrong.",
  "패스키를 확인할 수 없습니다.": "The passkey could not be verified.",
  "이 주소에서는 패스키를 사용할 수 없습니다.": "Passkeys cannot be used at this address.",
  "해당 패스키를 찾을 수 없습니다.": "This passkey does not exist.",
  "2단계 인증 설정을 먼저 시작해 주세요.": "Start to set up two-step verification first.",
  "너무 흔하거나 아이디가 들어간 비밀번호는 사용할 수 없습니다.": "The password is too common or contains the ID.",
  "본인 확인이 필요합니다. 비밀번호나 2단계 인증 번호를 다시 입력해 주세요.":
    "Confirm your identity: enter your password or the code of the two-step verification again.",
  "2단계 인증을 먼저 설정해 주세요.": "Set up two-step verification first.",
  "비밀번호는 12자에서 256자 사이여야 합니다.": "A password has 12 to 256 characters.",
  "아이디(id)는 영문 소문자, 숫자, 점, 하이픈, 밑줄로 최대 40자입니다.":
    "An ID has at most 40 lower-case letters, digits, dots, hyphens and underscores.",
  "지점 코드(branch)는 영문 소문자, 숫자, 하이픈으로 최대 40자이며 영문 소문자나 숫자로 시작해야 합니다.":
    "A branch code has at most 40 lower-case letters, digits and hyphens, and begins with a letter or digit.",
  "역할(role) 값이 올바르지 않습니다.": "This role does not exist.",
  "본사가 아니면 담당 지점(branches)이 하나 이상 필요합니다.":
    "Except for the head office, choose at least one branch.",
  "로그인할 수 있는 마지막 본사 계정은 바꿀 수 없습니다.":
    "The last account of the headquarters that can log in cannot be changed.",
  "자신의 권한은 스스로 바꿀 수 없습니다.": "You cannot change your own rights.",
  "로그인 인증번호는 다시 보낼 수 없습니다.": "A login code cannot be sent again.",
  "그 뒤에 바뀐 내용이 있어 이 메시지는 다시 보낼 수 없습니다. 최근 메시지를 보내 주세요.":
    "Something has changed since, so this message cannot be sent again. Please send the latest one.",
  "해당 세션을 찾을 수 없습니다.": "This session does not exist.",
  "이미 사용 중인 아이디입니다.": "This ID is already in use.",
  "인가되지 않은 사용자입니다.": "Your account may not do this.",
  "해당 토큰을 찾을 수 없습니다.": "This token does not exist.",
  "권한(scopes)은 read, book, money, doors, climate 중 하나 이상이어야 합니다.":
    "Choose at least one scope of read, book, money, doors and climate.",
  "만료 시각(expiresAt)은 현재보다 뒤여야 합니다.": "The expiry must be in the future.",
  "색(color)은 #1b64da 형식이어야 하고, 흰 글자와 흰 배경에서 읽을 수 있게 충분히 어두워야 합니다(명암비 4.5 이상).":
    "The colour has the form #1b64da and must be dark enough to be read with and on white (contrast of at least 4.5).",
  "로고(data)는 32KB 이하, 한 변 16~1024픽셀의 PNG 또는 JPEG 그림이어야 합니다.":
    "The logo must be a PNG or JPEG picture of at most 32 KB with sides of 16 to 1,024 pixels.",
  "사진(data)은 6MB 이하, 2,500만 화소 이하, 짧은 변 320픽셀 이상이고 긴 변이 짧은 변의 3배를 넘지 않는 JPEG, PNG 또는 WebP 그림이어야 합니다.":
    "The photo must be a JPEG, PNG or WebP picture of at most 6 MB and 25 million pixels, with a shorter side of at least 320 pixels and a longer one of at most three times that.",
  "최근에 이용이 끝난 예약이 없어 사진을 남길 수 없습니다.":
    "No stay has ended recently, so there is nothing to photograph.",
  "룸마다 사진은 6장까지 올릴 수 있습니다. 다른 사진을 먼저 삭제해 주세요.":
    "A room has at most 6 photos. Delete another one first.",
  "해당 사진을 찾을 수 없습니다.": "This photo does not exist.",
  "들어오는 길은 8단계까지 안내할 수 있습니다. 다른 단계를 먼저 삭제해 주세요.":
    "The way in has at most 8 steps. Delete another one first.",
  "해당 단계를 찾을 수 없습니다.": "This step does not exist.",
  "해당 약관 버전을 찾을 수 없습니다.": "This version of the terms does not exist.",
  "이미 있는 약관 버전입니다. 버전은 바꿀 수 없으니 새 버전을 만들어 주세요.":
    "This version of the terms exists and cannot be changed. Create a new version.",
  "해당 사업자를 찾을 수 없습니다.": "This selling entity does not exist.",
  "결제사가 시크릿 키를 거절했습니다. 키를 다시 확인해 주세요.":
    "The payment provider rejected the secret key. Please check the key.",
  "사용을 마친 사업자입니다.": "This selling entity is retired.",
  "이 사업자로 판매하는 지점이 있습니다. 먼저 지점의 판매 사업자를 바꿔 주세요.":
    "A branch sells for this entity. Give the branch another selling entity first.",
  "이 사업자의 결제나 환불, 확인할 차이가 남아 있습니다. 먼저 끝내 주세요.":
    "A payment, a refund or a difference of this entity is open. Finish it first.",
  "이 사업자의 결제를 찾을 수 없는 키입니다. 다른 계약의 키는 새 사업자로 추가해 주세요.":
    "This key does not find the payments of the selling entity. Add a new entity for the keys of another contract.",
  "이미 다른 사업자가 사용하는 결제 키입니다.": "Another selling entity uses this payment key.",
  "해당 웹훅을 찾을 수 없습니다.": "This webhook does not exist.",
  "웹훅 주소(url)는 공개된 https 주소여야 합니다.": "The address of a webhook must be a public https address.",
  "웹훅은 50개까지 추가할 수 있습니다.": "At most 50 webhooks can be added.",
  "해당 지점에 접근 권한이 없습니다.": "You have no access to this branch.",
  "요청하신 경로를 찾을 수 없습니다.": "This address does not exist.",
  "해당 지점을 찾을 수 없습니다.": "This branch does not exist.",
  "해당 룸을 찾을 수 없습니다.": "This room does not exist.",
  "해당 예약을 찾을 수 없습니다.": "This reservation does not exist.",
  "해당 예약에 휴대폰 번호가 없습니다.": "This reservation has no mobile number.",
  "해당 메모를 찾을 수 없습니다.": "This note does not exist.",
  "이 휴대폰 번호로는 예약할 수 없습니다. 지점에 문의해 주세요.": "This mobile number is blocked.",
  "해당 메시지를 찾을 수 없습니다.": "This message does not exist.",
  "그 사이에 변경되었습니다. 새로 조회한 뒤 다시 시도해 주세요.":
    "It has changed meanwhile. Load it again and try again.",
  "사용 중이거나 예약된 적이 있는 룸은 삭제할 수 없습니다.":
    "A room that is in use or has had reservations cannot be deleted.",
  "해당 알림을 찾을 수 없습니다.": "This alert does not exist.",
  "해당 채널을 찾을 수 없습니다.": "This channel does not exist.",
  "이미 있는 룸 번호입니다.": "A room has this number already.",
  "이미 있는 지점 코드입니다.": "This branch code is already in use.",
  "이미 등록된 채널입니다.": "This channel is already registered.",
  "해당 차이를 찾을 수 없습니다.": "This difference does not exist.",
  "보낼 열쇠나 받는 사람이 없습니다.": "There is no key to send, or no recipient.",
  "버전, 배포 단계 또는 관찰 시간이 올바르지 않습니다.": "The version, the waves or the time to watch is not valid.",
  "바꿀 글(change.old)이 있는 장치 설정이 없습니다.": "No agent has settings with the text to replace.",
  "해당 버전의 패키지를 찾을 수 없습니다.": "There is no package of this version.",
  "이미 진행 중인 배포가 있습니다.": "Another rollout is in progress.",
  "이어서 할 수 있는 중지된 배포가 없습니다.": "There is no stopped rollout to resume.",
  "진행 중인 배포를 찾을 수 없습니다.": "No rollout is in progress.",
  "설정(settings)은 제어 문자가 없는 24KB 이하의 텍스트여야 합니다.":
    "Settings are a text of at most 24 KB without control characters.",
  "해당 설정 버전을 찾을 수 없습니다.": "This version of the settings does not exist.",
  "이 장치의 프로그램은 진단을 지원하지 않습니다. 먼저 업데이트해 주세요.":
    "The program of this device has no diagnostics. Update it first.",
  "해당 장치를 찾을 수 없습니다.": "This device does not exist.",
  "해당 관리자를 찾을 수 없습니다.": "This administrator does not exist.",
  "해당 시간대에 이미 예약이 존재합니다.": "That time is already taken.",
  "이미 예약 진행 중인 시간대입니다.": "Another purchase holds that time.",
  "현재 예약할 수 없는 룸입니다.": "This room cannot be reserved at present.",
  "예약 정보가 변경되었습니다. 다시 확인해 주세요.": "The reservation has changed. Please check it again.",
  "요청 시간이 초과되었습니다.": "No answer came in time.",
  "예약 세션이 만료되었습니다.": "The hold has expired.",
  "결제 금액이 예약 금액과 일치하지 않습니다.": "The amount is not that of the reservation.",
  "결제 결과를 확인하고 있습니다.": "The outcome of the payment is being checked.",
  "환불 금액(amount)이 남은 결제 금액보다 큽니다.": "The refund is larger than what is left of the payment.",
  "환불 금액이 변경되었습니다. 다시 확인해 주세요.": "The refund has changed. Check it again.",
  "진행 중인 환불이 있습니다. 먼저 완료한 뒤 다시 시도해 주세요.":
    "Another refund is in progress. Try again when it has ended.",
  "현금영수증을 발급할 입금이 없습니다.": "There is no deposit for a cash receipt.",
  "이미 발급되었거나 처리 중인 현금영수증입니다.": "The cash receipt is issued or in progress.",
  "환불할 결제 금액이 없습니다.": "There is no payment to refund.",
  "요청한 관리자가 아닌 다른 관리자의 승인이 필요합니다.":
    "An administrator other than the one who asked has to approve it.",
  "취소되거나 변경된 예약의 비밀번호로 아직 문이 열릴 수 있어 판매를 보류한 시간입니다. 본사만 판매 보류를 해제할 수 있습니다.":
    "This time is not for sale, because the PIN of a cancelled or changed reservation may still open the door. Only the head office can release it.",
  "bookingStatus 값이 올바르지 않습니다.": "The reservation has changed. Load it again and try again.",
  "은행 코드 값이 올바르지 않습니다.": "This bank does not exist.",
  "가상계좌 환불에는 환불 은행(refundReceiveAccountBank), 계좌번호(refundReceiveAccountNumber), 예금주(refundReceiveAccountHolderName)가 필요합니다.":
    "A refund of a deposit needs a bank, an account number and its holder.",
  "열쇠가 없는 예약입니다. 결제가 끝난 예약만 열쇠를 바꿀 수 있습니다.":
    "This reservation has no key. Only the key of a paid reservation can be replaced.",
  "연락처를 고칠 수 없는 예약입니다.": "The contact of this reservation cannot be corrected.",
  "해당 동행 열쇠를 찾을 수 없습니다.": "This companion's key does not exist.",
  "변경할 수 없는 예약입니다.": "This reservation cannot be moved.",
  "최대 예약 시간은 5시간입니다.": "A reservation lasts at most 5 hours.",
  "시작 시각(startDateTime)과 종료 시각(endDateTime)은 10분 단위여야 합니다.": "Start and end lie on ten-minute marks.",
  "시작 시각(startDateTime)이나 종료 시각(endDateTime)이 지점의 시간대에 없는 시각입니다.":
    "The start or the end does not exist in the time zone of the branch.",
  "종료 시각(endDateTime)은 시작 시각(startDateTime)보다 늦어야 합니다.": "The end must be after the start.",
  "시작 시각(startDateTime)이 이미 지났습니다.": "The start is in the past.",
  "휴무일에는 예약할 수 없습니다. 시작 시각(startDateTime)을 확인해 주세요.": "The branch is closed on that day.",
  "휴게 시간에는 예약할 수 없습니다. 시작 시각(startDateTime)과 종료 시각(endDateTime)을 확인해 주세요.":
    "The time lies in a break.",
  "운영 시간 외에는 예약할 수 없습니다. 시작 시각(startDateTime)과 종료 시각(endDateTime)을 확인해 주세요.":
    "The time lies outside the opening hours.",
  "해당 판매 보류를 찾을 수 없습니다.": "This quarantine does not exist.",
  "해당 문 열기 요청을 찾을 수 없습니다.": "This request for a door does not exist.",
  "이용 중이거나 곧 이용할 룸에는 들어갈 수 없습니다.": "A room that is in use, or will be soon, cannot be entered.",
  "해당 에어컨 옵션을 찾을 수 없습니다.": "This option of the air conditioner does not exist.",
  "한 룸(room)에는 정책을 하나만 정할 수 있습니다.": "A room can have only one policy.",
  "에어컨(unit)에 없는 옵션입니다.": "The air conditioner does not have this option.",
  "지점 장치가 응답하지 않습니다.": "The device of the branch does not answer.",
  "해당 룸에 예약이 존재하여 비활성화할 수 없습니다.": "The room has reservations, so it cannot be switched off.",
  "변경할 운영 시간 밖에 예약이 있습니다.": "There are reservations outside the new opening hours.",
  "예약 사이의 간격이 새 정리 시간보다 짧습니다.": "Some reservations lie closer together than the new turnover.",
  "문이 확인되지 않은 룸은 활성화할 수 없습니다. 지점 장치에 문이 연결되어 있고 비밀번호(PIN)가 등록되어 있어야 합니다.":
    "A room whose door is not proven cannot be switched on: the device of the branch needs its door, and the door needs a PIN.",
  "일시적인 오류가 발생했습니다.": "An error occurred. Please try again.",
  "일시적으로 서비스를 이용할 수 없습니다. 잠시 후 다시 시도해 주세요.":
    "The service is not available at present. Please try again in a moment.",
};
