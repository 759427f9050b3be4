import { defineConfig } from 'drizzle-kit'

/** For `npm run db:generate`, which makes a migration from the changes of the tables. It needs no database. */
export default defineConfig({ dialect: 'postgresql', schema: './db/postgres/drizzle-kit.ts', out: './db/migrations' })
