// The schema for drizzle-kit, which loads this file as CommonJS and reads the tables from its exports. tables.ts
// exports the tables of the settings only as members of `settingsTables`.
import { settingsTables } from './tables.ts'

export * from './tables.ts'

declare const module: { exports: object }

Object.assign(module.exports, settingsTables)
