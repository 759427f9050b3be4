import { memoized } from '../../../protocol/memoized.ts'
import type { SystemConfig } from '../../../schemas/settings.ts'
import { withCurrentSmartRoutingNames } from '../../../schemas/smart-routing.ts'
import { SystemSections } from '../../../schemas/system.ts'
import { withDefaults } from '../../settings/index.ts'

/** `systemConfig.smartRouting` with its defaults. */
export type SmartRoutingSettings = NonNullable<SystemSections['smartRouting']>

/** Returns the settings of `$smart`. Absent members, and stored members of a wrong type, get their defaults. */
export const smartRoutingSettingsOf = memoized(({ smartRouting = {} }: SystemConfig): SmartRoutingSettings =>
  withDefaults(SystemSections.properties.smartRouting, withCurrentSmartRoutingNames(smartRouting)))
