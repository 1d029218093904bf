// The shapes of the service's requests and answers, generated from openapi.yaml by `npm run types`. Only types are
// imported, so the bundler never needs the generated file and the service builds without Node.

import type { components } from "../../generated/openapi";

export type Schemas = components["schemas"];
