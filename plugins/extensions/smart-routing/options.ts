import { Value } from '@sinclair/typebox/value'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { withCurrentNames } from '../../../schemas/smart-routing.ts'
import { SystemSections } from '../../../schemas/system.ts'

const Options = SystemSections.properties.smartRouting

/** `systemConfig.smartRouting` with its defaults. */
export type SmartRoutingSettings = NonNullable<SystemSections['smartRouting']>

const settingsCache = new WeakMap<SystemConfig, SmartRoutingSettings>()

/** The settings of `$smart`. Absent members, and stored members of a wrong type, get their defaults. */
export function smartRoutingSettingsOf (system: SystemConfig): SmartRoutingSettings {
  let options = settingsCache.get(system)
  if (!options) {
    const stored = Object.entries(withCurrentNames(system.smartRouting ?? {})).filter(([name, value]) => {
      const schema = Options.properties[name as keyof typeof Options.properties]
      return schema !== undefined && Value.Check(schema, value)
    })
    settingsCache.set(system, options = Value.Default(Options, Object.fromEntries(stored)) as SmartRoutingSettings)
  }
  return options
}
