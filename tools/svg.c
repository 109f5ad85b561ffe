/* SPDX-License-Identifier: BSD-3-Clause */
#include "svg.h"

#include <math.h>

#define MARK 4.5 /* pixels from its middle */

/* Yellow is left out: on white it is not seen. Grey and a second blue take its place. */
static const char style[] =
	"<style>\n"
	"text{font:13px 'DejaVu Sans',Verdana,Arial,sans-serif;fill:#1f2328}\n"
	".end{text-anchor:end}.middle{text-anchor:middle}\n"
	".small{font-size:11px;fill:#57606a}.head{font-size:15px;font-weight:bold}\n"
	".label{font-size:12px}\n"
	".page{fill:#fff}.axis{stroke:#57606a}.grid{stroke:#d8dee4}\n"
	".must{stroke:#1f2328;stroke-dasharray:4 3;stroke-width:1.5}\n"
	".thin{stroke:#0072b2;stroke-width:1.5}.thick{stroke:#0072b2;stroke-width:7}\n"
	".circle{fill:none;stroke:#0072b2;stroke-width:2}\n"
	".square{fill:#d55e00}\n"
	".line{fill:none;stroke-width:1.8}\n"
	".s0{stroke:#0072b2}.s1{stroke:#d55e00}.s2{stroke:#009e73}.s3{stroke:#e69f00}\n"
	".s4{stroke:#cc79a7}.s5{stroke:#56b4e9}.s6{stroke:#1f2328}.s7{stroke:#8c6d00}\n"
	".s8{stroke:#6e7781}.s9{stroke:#7f3fbf}\n"
	".f{stroke-width:1.8;fill:none}\n"
	"@media (prefers-color-scheme:dark){\n"
	"text{fill:#e6edf3}.small{fill:#9198a1}.page{fill:#0d1117}.axis{stroke:#9198a1}\n"
	".grid{stroke:#30363d}.must{stroke:#e6edf3}.thin,.thick,.circle{stroke:#56b4e9}\n"
	".square{fill:#f0883e}.s0{stroke:#3b9ae1}.s1{stroke:#f0883e}.s6{stroke:#e6edf3}\n"
	".s7{stroke:#f0e442}.s8{stroke:#9198a1}.s9{stroke:#b38cf0}.s2{stroke:#1fc79b}\n"
	"}\n"
	"</style>\n";

static void
put_text(FILE *out, const char *text)
{
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			(void)fputs("&amp;", out);
			break;
		case '<':
			(void)fputs("&lt;", out);
			break;
		case '>':
			(void)fputs("&gt;", out);
			break;
		default:
			/* What XML does not know is shown as what cannot be shown. */
			(void)fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
		}
	}
}

void
svg_begin(FILE *out, unsigned int width, unsigned int height, const char *title)
{
	(void)fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" role=\"img\">\n<title>",
		width, height, width, height);
	put_text(out, title);
	(void)fputs("</title>\n", out);
	(void)fputs(style, out);
	(void)fprintf(out, "<rect class=\"page\" width=\"%u\" height=\"%u\"/>\n", width,
		height);
	svg_text(out, (struct svg_point){16, 26}, "head", title);
}

void
svg_end(FILE *out)
{
	(void)fputs("</svg>\n", out);
}

void
svg_text(FILE *out, struct svg_point at, const char *class, const char *text)
{
	(void)fprintf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\">", class, at.x, at.y);
	put_text(out, text);
	(void)fputs("</text>\n", out);
}

void
svg_text_upwards(FILE *out, struct svg_point at, const char *text)
{
	(void)fprintf(out,
		"<text class=\"middle label\" transform=\"translate(%.1f %.1f) rotate(-90)\">",
		at.x, at.y);
	put_text(out, text);
	(void)fputs("</text>\n", out);
}

void
svg_line(FILE *out, struct svg_point from, struct svg_point to, const char *class)
{
	(void)fprintf(out,
		"<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n", class,
		from.x, from.y, to.x, to.y);
}

void
svg_path(FILE *out, const struct svg_point *points, size_t n, unsigned int series)
{
	(void)fprintf(out, "<polyline class=\"line s%u\" points=\"", series);
	for (size_t i = 0; i < n; i++)
		(void)fprintf(out, "%s%.1f,%.1f", i == 0 ? "" : " ", points[i].x, points[i].y);
	(void)fputs("\"/>\n", out);
}

/** A closed path of corners about a middle, the first at an angle in eighths of a turn. */
static void
put_polygon(FILE *out, struct svg_point at, unsigned int n, double eighths, unsigned int series)
{
	(void)fprintf(out, "<path class=\"f s%u\" d=\"", series);
	for (unsigned int i = 0; i < n; i++) {
		const double angle = 2 * M_PI * (i / (double)n + eighths / 8);

		(void)fprintf(out, "%c%.1f %.1f", i == 0 ? 'M' : 'L',
			at.x + 1.2 * MARK * cos(angle), at.y + 1.2 * MARK * sin(angle));
	}
	(void)fputs("Z\"/>\n", out);
}

/** Two strokes, or a star's four, the first at an angle in eighths of a turn. */
static void
put_strokes(FILE *out, struct svg_point at, unsigned int n, double eighths, unsigned int series)
{
	(void)fprintf(out, "<path class=\"f s%u\" d=\"", series);
	for (unsigned int i = 0; i < n; i++) {
		const double angle = M_PI * i / n + 2 * M_PI * eighths / 8;
		const double dx = 1.1 * MARK * cos(angle), dy = 1.1 * MARK * sin(angle);

		(void)fprintf(out, "M%.1f %.1fL%.1f %.1f", at.x - dx, at.y - dy, at.x + dx,
			at.y + dy);
	}
	(void)fputs("\"/>\n", out);
}

void
svg_mark(FILE *out, struct svg_point at, unsigned int series)
{
	static const struct {
		unsigned int n_corners; /* 0: strokes */
		unsigned int n_strokes;
		double eighths;
	} shapes[SVG_SERIES] = {
		{16, 0, 0}, /* a circle */
		{4, 0, 1},  /* a square */
		{3, 0, -2}, /* a triangle, upwards */
		{4, 0, 0},  /* a diamond */
		{3, 0, 2},  /* downwards */
		{0, 2, 0},  /* + */
		{0, 2, 1},  /* x */
		{3, 0, 0},  /* to the right */
		{0, 4, 0},  /* a star */
		{6, 0, 0},
	};

	if (shapes[series].n_corners > 0)
		put_polygon(out, at, shapes[series].n_corners, shapes[series].eighths, series);
	else
		put_strokes(out, at, shapes[series].n_strokes, shapes[series].eighths, series);
}

void
svg_circle(FILE *out, struct svg_point at)
{
	(void)fprintf(out, "<circle class=\"circle\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/>\n",
		at.x, at.y, 5.0);
}

void
svg_square(FILE *out, struct svg_point at)
{
	(void)fprintf(out,
		"<rect class=\"square\" x=\"%.1f\" y=\"%.1f\" width=\"6\" height=\"6\"/>\n",
		at.x - 3, at.y - 3);
}

void
svg_begin_name(FILE *out, const char *name)
{
	(void)fputs("<g><title>", out);
	put_text(out, name);
	(void)fputs("</title>", out);
}

void
svg_end_name(FILE *out)
{
	(void)fputs("</g>\n", out);
}
