CREATE TABLE "skills" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "skills_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "teams" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "teams_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "policies" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "policies_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "guards" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "guards_key_unique" UNIQUE("key")
);
--> statement-breakpoint
CREATE TABLE "quotas" (
	"position" bigint PRIMARY KEY NOT NULL,
	"key" text,
	"data" jsonb,
	"spelling" text,
	"sealed" text,
	CONSTRAINT "quotas_key_unique" UNIQUE("key")
);
