// The schema for drizzle-kit, which loads this file as CommonJS and finds the tables among its exports. The tables of
// the settings are added to these, since tables.ts exports them only as members of `settingsTables`.
import { settingsTables } from './tables.ts'

export * from './tables.ts'

declare const module: { exports: object }

Object.assign(module.exports, settingsTables)
