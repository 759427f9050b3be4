import type { Cleanup } from './hub.ts'
import { baseLimits } from '../../plugins/base/limits/limits.ts'
import { downstreamLimits } from '../../plugins/downstream/limits.ts'
import { gatewayLimits } from '../../plugins/gateway/limits.ts'
import { settingsLimits } from '../../plugins/settings/limits.ts'
import { upstreamLimits } from '../../plugins/upstream/limits.ts'
import { identityLimits } from '../../plugins/identity/limits.ts'
import { extensionsLimits } from '../../plugins/extensions/limits.ts'
import { managementLimits } from '../../plugins/management/limits.ts'

/**
 * Gives gateways within this process twenty times the time for what depends on how fast a machine is: a client that reads slowly, a list,
 * a connection, a compression. A test of such a limit sets its own (`setLimits`).
 */
const factor = 20
const patient: Array<[object, readonly string[]]> = [
  [baseLimits, ['readStall', 'connectTimeout']],
  [downstreamLimits, ['initializeTimeout', 'streamBacklogTime', 'resumeGrace', 'streamOpenTimeout']],
  [gatewayLimits, ['connectionWait', 'newClass']],
  [upstreamLimits, ['listTime', 'undeclaredTools']],
  [settingsLimits.freshLookUps, ['timeout']],
  [upstreamLimits.login, ['time']],
  [identityLimits.social, ['timeout']],
  [upstreamLimits.serverTests, ['time']],
  [extensionsLimits.compression, ['time']],
  [managementLimits.catalogues, ['time']],
  [upstreamLimits.openapi, ['readTime', 'tokenTime']]
]
for (const [section, names] of patient) {
  for (const name of names) Object.assign(section, { [name]: Number(Reflect.get(section, name)) * factor })
}

/** Sets limits until the test ends. @param section `limits`, or an object in it */
export function setLimits<Section extends object> (t: Cleanup, section: Section, values: Partial<Record<keyof Section, unknown>>): void {
  const before = Object.fromEntries(Object.keys(values).map((name) => [name, Reflect.get(section, name)]))
  Object.assign(section, values)
  t.after(() => { Object.assign(section, before) })
}
