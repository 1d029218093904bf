// biome-ignore lint/suspicious/noRedundantUseStrict: shops load this file as a classic script
"use strict";
// Stand-in for the payment provider's browser SDK v2, as far as a shop with the standard widget needs it: the
// same calls in the same forced order, the same error codes. Instead of a payment window it opens the sandbox's
// widget page.
(() => {
  const origin = new URL(/** @type {HTMLScriptElement} */ (document.currentScript).src).origin;
  const names = { CARD: "카드", VIRTUAL_ACCOUNT: "가상계좌", MOBILE_PHONE: "휴대폰", EASY_PAY: "간편결제" };

  class TossPaymentsError extends Error {
    constructor(code, message) {
      super(message);
      this.name = "TossPaymentsError";
      this.code = code;
    }
  }

  const element = (selector) => {
    const found = document.querySelector(selector);
    if (!found) throw new TossPaymentsError("INVALID_SELECTOR", "선택자에 해당하는 요소가 없습니다.");
    return found;
  };

  /** Goes to the payment page; the promise stays open, as the page is left. */
  function pay(clientKey, request, amount, method) {
    const { orderId, orderName, successUrl, failUrl } = request || {};
    if (!/^[A-Za-z0-9\-_=]{6,64}$/.test(orderId || ""))
      throw new TossPaymentsError("INVALID_ORDER_ID", "orderId는 6자 이상 64자 이하여야 합니다.");
    if (!orderName) throw new TossPaymentsError("INVALID_ORDER_NAME", "orderName은 필수입니다.");
    for (const url of [successUrl, failUrl])
      if (!/^https?:\/\//.test(url || ""))
        throw new TossPaymentsError("INVALID_URL", "successUrl과 failUrl은 오리진을 포함한 전체 주소여야 합니다.");
    const page = new URL("/sandbox/widget", origin);
    const fields = {
      orderId,
      orderName,
      successUrl,
      failUrl,
      amount,
      method,
      clientKey,
      customerName: request.customerName,
      customerMobilePhone: request.customerMobilePhone,
    };
    for (const [name, value] of Object.entries(fields)) if (value) page.searchParams.set(name, value);
    location.assign(page);
    return new Promise(() => {});
  }

  function choices(container, group, labels, type, checked) {
    container.replaceChildren(
      ...labels.map((text, i) => {
        const label = document.createElement("label");
        const input = Object.assign(document.createElement("input"), {
          type,
          name: group,
          value: text,
          checked: checked && i === 0,
        });
        Object.assign(label.style, { display: "flex", alignItems: "center", gap: "8px", minHeight: "44px" });
        label.append(input, text);
        return label;
      }),
    );
    return [...container.querySelectorAll("input")];
  }

  /** What render calls return: events of a widget that is ready at once. */
  const rendered = (extra) => ({
    on(event, listener) {
      if (event === "ready") queueMicrotask(listener);
    },
    async destroy() {},
    ...extra,
  });

  /**
   * @param {string} clientKey
   * @param {{customerKey?: string}} [options]
   */
  function widgets(clientKey, { customerKey } = {}) {
    if (!customerKey) throw new TossPaymentsError("INVALID_CUSTOMER_KEY", "customerKey는 필수입니다.");
    let amount, methods, terms;
    const ready = () => {
      if (!amount) throw new TossPaymentsError("NOT_SETUP_AMOUNT", "setAmount()로 결제 금액을 먼저 설정해주세요.");
    };
    return {
      async setAmount({ currency, value }) {
        if (currency !== "KRW" || !Number.isInteger(value) || value <= 0)
          throw new TossPaymentsError("INVALID_AMOUNT", "결제 금액이 올바르지 않습니다.");
        amount = value;
      },
      async renderPaymentMethods({ selector }) {
        ready();
        methods = choices(element(selector), "toss-sandbox-method", Object.values(names), "radio", true);
        return rendered({ getSelectedPaymentMethod: async () => ({ code: methods.find((m) => m.checked)?.value }) });
      },
      async renderAgreement({ selector }) {
        ready();
        terms = choices(
          element(selector),
          "toss-sandbox-terms",
          ["[필수] 결제 서비스 이용 약관, 개인정보 처리 동의"],
          "checkbox",
          true,
        );
        return rendered();
      },
      async requestPayment(request) {
        ready();
        const method = methods?.find((m) => m.checked)?.value;
        if (!method) throw new TossPaymentsError("NOT_SELECTED_PAYMENT_METHOD", "결제 수단이 선택되지 않았습니다.");
        if (terms?.some((t) => !t.checked))
          throw new TossPaymentsError("NEED_AGREEMENT_WITH_REQUIRED_TERMS", "필수 약관에 동의해주세요.");
        return pay(clientKey, request, amount, method);
      },
    };
  }

  /**
   * @param {string} clientKey
   * @param {{customerKey?: string}} [options]
   */
  function payment(clientKey, { customerKey } = {}) {
    if (!customerKey) throw new TossPaymentsError("INVALID_CUSTOMER_KEY", "customerKey는 필수입니다.");
    return {
      requestPayment: async (request) => pay(clientKey, request, request?.amount?.value, names[request?.method]),
    };
  }

  function TossPayments(clientKey) {
    if (!/^(test|live)_g?ck_/.test(clientKey || ""))
      throw new TossPaymentsError("INVALID_CLIENT_KEY", "클라이언트 키가 올바르지 않습니다.");
    return { widgets: (options) => widgets(clientKey, options), payment: (options) => payment(clientKey, options) };
  }
  TossPayments.ANONYMOUS = "ANONYMOUS";
  globalThis.TossPayments = TossPayments;
})();
