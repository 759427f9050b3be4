import { limits } from '../../plugins/base/limits/limits.ts'
import type { Cleanup } from './hub.ts'

/**
 * Gives gateways within this process twenty times the time for what depends on how fast a machine is: a client that reads slowly, a list,
 * a connection, a compression. A test of such a limit sets its own (`setLimits`).
 */
const factor = 20
const patient: Array<[object, readonly string[]]> = [
  [limits, ['initializeTimeout', 'streamBacklogTime', 'readStall', 'resumeGrace', 'streamOpenTimeout', 'newClass', 'connectionWait', 'listTime', 'undeclaredTools', 'connectTimeout']],
  [limits.freshLookUps, ['timeout']],
  [limits.login, ['time']],
  [limits.social, ['timeout']],
  [limits.serverTests, ['time']],
  [limits.compression, ['time']],
  [limits.catalogues, ['time']],
  [limits.openapi, ['readTime', 'tokenTime']]
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
