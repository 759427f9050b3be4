import { defineConfig } from 'drizzle-kit'

/** For `npm run db:generate`: a migration from what changed in the tables. It needs no database. */
export default defineConfig({ dialect: 'postgresql', schema: './db/postgres/tables.ts', out: './db/migrations' })
