#include "bench/picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "bench/table.h"

namespace thalweg::bench {
namespace {

// In pixels. Points at the upper edge stand in a lane of their own, a little apart by curve.
constexpr double panel_width = 380, panel_height = 280, left = 52, right = 14, top = 26, bottom = 46;
constexpr double lane_step = 5, legend_step = 18, edge = 8;
constexpr std::size_t panels_in_a_row = 2;
constexpr std::string_view line_colour = "#000000";

struct Range {
    double low = std::numeric_limits<double>::infinity(), high = 0;

    void take(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    // 0 at the low end, 1 at the high one, logarithmically.
    double share(double value) const {
        return high > low ? std::log(value / low) / std::log(high / low) : 0.5;
    }
};

std::string text_at(double x, double y, std::string_view words, std::string_view more) {
    return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\"{}>{}</text>\n", x, y, more, words);
}

std::string line_at(double x1, double y1, double x2, double y2, std::string_view more) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1, y1, x2, y2,
                       more);
}

class Drawing {
  public:
    Drawing(const std::vector<Panel>& panels, const Axes& axes) : panels_(panels), axes_(axes) {
        for (const Panel& panel : panels)
            for (const Curve& curve : panel.curves) {
                const auto same = [&](const Curve* each) { return each->name == curve.name; };
                if (std::none_of(legend_.begin(), legend_.end(), same)) legend_.push_back(&curve);
                for (const auto& [x, y] : curve.points) {
                    xs_.take(x);
                    if (std::isfinite(y) && y > 0) ys_.take(y);
                }
            }
        ys_.take(axes.line);
        // Whole decades.
        ys_.low = std::pow(10, std::floor(std::log10(ys_.low)));
        ys_.high = std::pow(10, std::ceil(std::log10(ys_.high)));
    }

    bool empty() const { return xs_.high == 0; }

    std::string text() const {
        const std::size_t columns = std::min(panels_.size(), panels_in_a_row);
        const std::size_t rows = (panels_.size() + columns - 1) / columns;
        const double width = panel_width * static_cast<double>(columns);
        const double high = panel_height * static_cast<double>(rows);
        const double all = high + legend_step * static_cast<double>(legend_.size() + 1) + edge;
        std::string text = fmt::format(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
            "height=\"{1:.0f}\" font-family=\"sans-serif\" font-size=\"12\">\n"
            "<rect width=\"{0:.0f}\" height=\"{1:.0f}\" fill=\"white\"/>\n",
            width, all);
        for (std::size_t i = 0; i < panels_.size(); ++i)
            text += panel_at(panels_[i], panel_width * static_cast<double>(i % columns),
                             panel_height * static_cast<double>(i / columns));
        return text + legend_at(high) + "</svg>\n";
    }

  private:
    double lane() const { return lane_step * static_cast<double>(legend_.size() + 1); }
    double across(double x) const { return left + (panel_width - left - right) * xs_.share(x); }
    double up(double y) const {
        const double floor = panel_height - bottom;
        return floor - (floor - top - lane()) * ys_.share(y);
    }
    // A curve has its height in the lane by its place in the legend.
    double in_lane(const Curve& curve) const {
        const auto found = std::find_if(legend_.begin(), legend_.end(),
                                        [&](const Curve* each) { return each->name == curve.name; });
        return top + lane_step * static_cast<double>(found - legend_.begin() + 1);
    }

    std::string panel_at(const Panel& panel, double x0, double y0) const {
        std::string text = fmt::format("<g transform=\"translate({:.0f},{:.0f})\">\n", x0, y0);
        text += text_at(panel_width / 2, top - 10, panel.title, " text-anchor=\"middle\"");
        const double ceiling = top + lane(), floor = panel_height - bottom, end = panel_width - right;
        // Half a decade of slack, because what is raised step by step is not exact.
        for (double y = ys_.low; y < 3 * ys_.high; y *= 10) {
            text += line_at(left, up(y), end, up(y), "stroke=\"#ddd\"");
            text +=
                text_at(left - 6, up(y) + 4, fmt::format("{:g}", y), " text-anchor=\"end\" font-size=\"10\"");
        }
        text +=
            text_at(left - 6, top + lane() / 2 + 4, axes_.infinite, " text-anchor=\"end\" font-size=\"10\"");
        for (double x = xs_.low; x <= xs_.high; x *= 4) {
            text += line_at(across(x), ceiling, across(x), floor, "stroke=\"#eee\"");
            text += text_at(across(x), floor + 14, bytes_text(static_cast<std::uint64_t>(x + 0.5)),
                            " text-anchor=\"middle\" font-size=\"9\"");
        }
        text += text_at((left + end) / 2, floor + 30, axes_.across, " text-anchor=\"middle\"");
        text += text_at(left, top - 10, axes_.up, " text-anchor=\"end\"");
        text += line_at(left, up(axes_.line), end, up(axes_.line),
                        fmt::format("stroke=\"{}\" stroke-dasharray=\"5 3\"", line_colour));
        for (const Curve& curve : panel.curves) text += curve_of(curve);
        return text + "</g>\n";
    }

    std::string curve_of(const Curve& curve) const {
        std::string path, marks, text;
        const auto finish = [&] {
            if (!path.empty())
                text += fmt::format(
                    "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\"/>\n", path,
                    curve.colour);
            path.clear();
        };
        for (const auto& [x, y] : curve.points) {
            const bool finite = std::isfinite(y);
            if (finite)
                path += fmt::format("{}{:.1f},{:.1f}", path.empty() ? "" : " ", across(x), up(y));
            else
                finish();
            marks += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\" stroke=\"{}\" fill=\"{}\"/>\n",
                                 across(x), finite ? up(y) : in_lane(curve), finite ? "3" : "2", curve.colour,
                                 finite ? curve.colour : "white");
        }
        finish();
        return text + marks;
    }

    std::string legend_at(double y) const {
        std::string text;
        const auto add = [&](std::string_view name, std::string_view colour, std::string_view more) {
            y += legend_step;
            text += line_at(left, y - 4, left + 26, y - 4,
                            fmt::format("stroke=\"{}\" stroke-width=\"2\"{}", colour, more));
            text += text_at(left + 34, y, name, "");
        };
        for (const Curve* curve : legend_) add(curve->name, curve->colour, "");
        add(axes_.line_text, line_colour, " stroke-dasharray=\"5 3\"");
        return text;
    }

    const std::vector<Panel>& panels_;
    const Axes& axes_;
    std::vector<const Curve*> legend_;
    Range xs_, ys_;
};

}  // namespace

std::string draw_panels(const std::vector<Panel>& panels, const Axes& axes) {
    const Drawing drawing(panels, axes);
    return drawing.empty() ? "" : drawing.text();
}

}  // namespace thalweg::bench
