import { Approvals } from './ports/approvals.ts'
import { Consents } from './ports/consents.ts'
import { ConsoleSessions } from './ports/console-sessions.ts'
import { EventWebhooks } from './ports/event-webhooks.ts'
import { OneTimeValues } from './ports/grants.ts'
import { BrowserStates, UsedRequestStates } from './ports/login-states.ts'
import { RecordPinStore, type PinStore } from './ports/pins.ts'
import { Tasks } from './ports/tasks.ts'
import { OAuthTokens } from './ports/tokens.ts'
import { UpstreamTokens } from './ports/upstream-tokens.ts'
import { RecordUsageCounts, type UsageCounts } from './ports/usage.ts'
import { UserValueRecords } from './ports/user-values.ts'
import type { Records } from './records.ts'

/** Creates the ports that store their data as records. `pins` is available only with a database. */
export const createRecordPorts = (records: Records) => ({
  grants: new OneTimeValues(records),
  tokens: new OAuthTokens(records),
  consents: new Consents(records),
  loginStates: new BrowserStates(records),
  consoleSessions: new ConsoleSessions(records),
  usedStates: new UsedRequestStates(records),
  upstreamTokens: new UpstreamTokens(records),
  userValues: new UserValueRecords(records),
  approvals: new Approvals(records),
  eventWebhooks: new EventWebhooks(records),
  tasks: new Tasks(records),
  pins: records.outlivesProcess ? new RecordPinStore(records) as PinStore : undefined,
  usage: new RecordUsageCounts(records) as UsageCounts
})
