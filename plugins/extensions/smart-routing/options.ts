import { Value } from '@sinclair/typebox/value'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { withTodaysNames } from '../../../schemas/smart-routing.ts'
import { SystemSections } from '../../../schemas/system.ts'

const Options = SystemSections.properties.smartRouting

/** `systemConfig.smartRouting` with its defaults. */
export type SmartRouting = NonNullable<SystemSections['smartRouting']>

const known = new WeakMap<SystemConfig, SmartRouting>()

/** The settings of `$smart`. Absent members, and stored members of a wrong type, get their defaults. */
export function smartRoutingOf (system: SystemConfig): SmartRouting {
  let options = known.get(system)
  if (!options) {
    const stored = Object.entries(withTodaysNames(system.smartRouting ?? {})).filter(([name, value]) => {
      const schema = Options.properties[name as keyof typeof Options.properties]
      return schema !== undefined && Value.Check(schema, value)
    })
    known.set(system, options = Value.Default(Options, Object.fromEntries(stored)) as SmartRouting)
  }
  return options
}
